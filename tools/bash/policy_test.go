//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// For a rule that asks, the user is asked if the client supports it.
func TestAsk(t *testing.T) {
	bin := mcpkittest.Build(t, "./tools/bash")
	for _, c := range []struct {
		name, answer string
		asks         bool
		code, says   string
	}{
		{"yes", `{"action":"accept","content":{"agree":true}}`, true, "", "pushed"},
		{"no", `{"action":"accept","content":{"agree":false}}`, true, "COMMAND_DENIED", "did not agree"},
		{"declined", `{"action":"decline"}`, true, "COMMAND_DENIED", "did not agree"},
		{"failed", "", true, "COMMAND_DENIED", "could not be asked"},
		{"nobody to ask", "", false, "COMMAND_DENIED", "cannot ask the user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			var question string
			opts := mcpkittest.Options{Handle: func(method string, params json.RawMessage) (any, error) {
				question = method + string(params)
				if c.answer == "" {
					return nil, errors.New("no")
				}
				return json.RawMessage(c.answer), nil
			}}
			if c.asks {
				opts.Capabilities = map[string]any{"elicitation": map[string]any{}}
			}
			s := p.serveBin(bin, opts, "--ask", "publish *", "--sandbox", "off")
			r := s.bash("publish() { echo pushed; }; publish now")
			require.Equal(t, c.code, r.Code, r.Text)
			require.Contains(t, r.Text, c.says)
			if c.asks {
				require.Contains(t, question, "elicitation/create")
				require.Contains(t, question, "publish now")
			}
			require.Contains(t, s.bash("echo publish").Text, "exit 0", "nobody is asked of this")
		})
	}
}

// The user sees a command completely or is not asked about it. The command of
// each case creates the file gone: if a question hid that part, the user would
// agree to it unseen.
func TestAskShowsAll(t *testing.T) {
	bin := mcpkittest.Build(t, "./tools/bash")
	steps := strings.Repeat("echo one more step of the release\n", 70)
	for name, c := range map[string]struct {
		command string
		more    []any
		shows   string // "": nobody is asked
	}{
		"tail after 2000 bytes": {"publish now\n" + steps + "touch gone", nil, "> touch gone\n"},
		"tail within bounds":    {"publish now\n" + strings.Repeat("echo a long step of the release that nobody reads to its end\n", 60) + "touch gone", nil, "> touch gone\n"},
		"one long line":         {"publish " + strings.Repeat("a", 9000) + "; touch gone", nil, ""},
		"too many lines":        {"publish now\n" + strings.Repeat(":\n", 200) + "touch gone", nil, ""},
		"blank lines":           {"publish now" + strings.Repeat("\n", 501) + "touch gone", nil, "> publish now\n> … 500 blank lines …\n> touch gone\n"},
		"spaces":                {"publish now" + strings.Repeat(" ", 1500) + "; touch gone", nil, "> publish now… 1500 spaces …; touch gone\n"},
		"hidden characters":     {"publish '\u202e\u200b\u2063'; touch gone", nil, `> publish '\u202e\u200b\u2063'; touch gone`},
		"standard input":        {"publish() { bash; }; publish now", []any{"stdin", "touch gone"}, "> touch gone\n"},
		"variables":             {"publish() { bash -c \"$STEP\"; }; publish now", []any{"env", map[string]any{"STEP": "touch gone"}}, "> STEP=touch gone\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			var question struct{ Message string }
			s := p.serveBin(bin, mcpkittest.Options{
				Capabilities: map[string]any{"elicitation": map[string]any{}},
				Handle: func(_ string, params json.RawMessage) (any, error) {
					require.NoError(t, json.Unmarshal(params, &question))
					return json.RawMessage(`{"action":"accept","content":{"agree":true}}`), nil
				},
			}, "--ask", "publish *", "--sandbox", "off")
			r := s.bash(c.command, c.more...)
			gone := filepath.Join(p.root, "gone")
			if c.shows == "" {
				require.Empty(t, question.Message)
				require.Equal(t, "COMMAND_DENIED", r.Code, r.Text)
				require.Contains(t, r.Text, "script file")
				require.NoFileExists(t, gone)
				return
			}
			require.Contains(t, question.Message, c.shows)
			require.FileExists(t, gone, "what was agreed to runs: %s", r.Text)
		})
	}
}

// asker is a client that agrees to every question and keeps the last.
type asker struct{ last string }

func (a *asker) options() mcpkittest.Options {
	return mcpkittest.Options{
		Capabilities: map[string]any{"elicitation": map[string]any{}},
		Handle: func(_ string, params json.RawMessage) (any, error) {
			var question struct{ Message string }
			if err := json.Unmarshal(params, &question); err != nil {
				return nil, err
			}
			a.last = question.Message
			return json.RawMessage(`{"action":"accept","content":{"agree":true}}`), nil
		},
	}
}

// The question shows the directory and the variables that earlier calls left.
func TestAskShowsSession(t *testing.T) {
	p := newPlace(t)
	p.write("root/sub/x", "")
	var user asker
	s := p.serveBin(mcpkittest.Build(t, "./tools/bash"), user.options(), "--ask", "publish *", "--sandbox", "off")
	require.Contains(t, s.bash("export TARGET=elsewhere; unset LANG; cd sub").Text, "exit 0")
	require.Empty(t, user.last)
	require.Contains(t, s.bash("publish() { pwd; }; publish now").Text, "sub\nexit 0")
	require.Contains(t, user.last, "> TARGET=elsewhere\n")
	require.Contains(t, user.last, "In the directory:\n> "+filepath.Join(p.root, "sub")+"\n")
	require.Contains(t, user.last, "Without the variables:\n> LANG\n")
	s.bash("publish new", "session", "other")
	require.NotContains(t, user.last, "TARGET")
	require.Contains(t, user.last, "In the directory:\n> "+p.root+"\n")

	user.last = ""
	require.Contains(t, s.bash("export LONG=$(printf %7000s x | tr ' ' y)").Text, "exit 0")
	r := s.bash("publish now")
	require.Equal(t, "COMMAND_DENIED", r.Code)
	require.Contains(t, r.Text, "new session")
	require.Empty(t, user.last)
}

// The user is asked before a job gets input if the user was asked about its
// command, and sees the whole input.
func TestAskBeforeInput(t *testing.T) {
	bin := mcpkittest.Build(t, "./tools/bash")
	p := newPlace(t)
	var user asker
	s := p.serveBin(bin, user.options(), "--ask", "publish *", "--sandbox", "off")
	id := s.bash("publish() { bash; }; publish now", "run_in_background", true).Meta["job_id"]
	require.Contains(t, user.last, "asked about later input")
	r := s.job("action", "write", "job_id", id, "input", "touch gone; echo done\n", "wait_for", "done")
	require.Contains(t, r.Text, "done\n")
	require.Contains(t, user.last, "> touch gone; echo done\n")
	require.Contains(t, user.last, "> publish() { bash; }; publish now\n")
	require.FileExists(t, filepath.Join(p.root, "gone"))

	user.last = ""
	r = s.job("action", "write", "job_id", id, "input", strings.Repeat(":\n", 100)+"touch more\n")
	require.Equal(t, "COMMAND_DENIED", r.Code, r.Text)
	require.Empty(t, user.last)
	id = s.bash("cat", "run_in_background", true).Meta["job_id"]
	require.Contains(t, s.job("action", "write", "job_id", id, "input", "hello\n", "wait_for", "hello").Text, "hello")
	require.Empty(t, user.last, "the command needed no agreement")
	require.NoFileExists(t, filepath.Join(p.root, "more"))

	// A user who does not agree.
	answers := []string{`{"action":"accept","content":{"agree":true}}`, `{"action":"decline"}`}
	s = p.serveBin(bin, mcpkittest.Options{
		Capabilities: map[string]any{"elicitation": map[string]any{}},
		Handle: func(string, json.RawMessage) (any, error) {
			answer := json.RawMessage(answers[0])
			answers = answers[1:]
			return answer, nil
		},
	}, "--ask", "publish *", "--sandbox", "off")
	id = s.bash("publish() { bash; }; publish now", "run_in_background", true).Meta["job_id"]
	r = s.job("action", "write", "job_id", id, "input", "touch more\n")
	require.Equal(t, "COMMAND_DENIED", r.Code, r.Text)
	require.Contains(t, r.Text, "did not agree")
	s.job("action", "write", "job_id", id, "input", "\u0004")
	require.NoFileExists(t, filepath.Join(p.root, "more"))
}

// Rules and modes are enforced, and a refusal names its rule.
func TestRules(t *testing.T) {
	p := newPlace(t)
	s := p.serve("--deny", "git push *", "--sandbox", "off")
	r := s.bash("git -C . push origin")
	require.Equal(t, "COMMAND_DENIED", r.Code)
	require.Contains(t, r.Text, "deny git push *")
	require.Contains(t, r.Text, "git -C . push origin")
	require.Equal(t, "deny", r.Meta["policy"].(map[string]any)["decision"])
	r = s.bash("$(echo true) x")
	require.Equal(t, "COMMAND_DENIED", r.Code, "it could be git push")
	s = p.serve("--sandbox", "off")
	r = s.bash("$(echo echo) x")
	require.Contains(t, r.Text, "x\nexit 0")
	require.Equal(t, "undecided", r.Meta["policy"].(map[string]any)["decision"])
	require.NotEmpty(t, r.Meta["policy"].(map[string]any)["undecided"])
	s = p.serve("--policy", "allow-list", "--allow", "echo *", "--sandbox", "off")
	require.Contains(t, s.bash("echo a b").Text, "a b\nexit 0")
	for _, command := range []string{"ls", "$(echo echo) x", "echo $(ls)"} {
		require.Equal(t, "COMMAND_DENIED", s.bash(command).Code, command)
	}
}

// Settings that can never work are refused at the start, with an alternative.
func TestFlags(t *testing.T) {
	bin := mcpkittest.Build(t, "./tools/bash")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--sandbox", "L3"}, "use L2, L1, seatbelt, restricted or off"},
		{[]string{"--net", "maybe"}, "off, on, registries"},
		{[]string{"--net", "allow="}, "allow"},
		{[]string{"--policy", "strict"}, "ban-list"},
		{[]string{"--deny", ""}, "deny"},
		{[]string{"--max-output", "0"}, "--max-output"},
		{[]string{"--max-memory", "lots"}, "invalid size"},
	} {
		out, err := exec.Command(bin, append(c.args, "--schema")...).CombinedOutput()
		require.Error(t, err, "%v", c.args)
		require.Contains(t, string(out), c.says, "%v", c.args)
	}
}

// The doctor tests what it prints, and fails if bash would refuse to run.
func TestDoctor(t *testing.T) {
	bin := mcpkittest.Build(t, "./tools/bash")
	p := newPlace(t)
	for _, level := range []string{"L2", "L1", "off"} {
		s := p.serve("--sandbox", level)
		works := !s.bash("true").IsError
		cmd := exec.Command(bin, "--doctor", "--sandbox", level, "--root", p.root, "--state", p.kept)
		cmd.Env = p.env
		out, err := cmd.Output()
		require.Equal(t, works, err == nil, "%s: %s", level, out)
		if works && level != "off" {
			require.Contains(t, string(out), "allowed     write in roots\n")
			require.Contains(t, string(out), "blocked     write outside (")
		}
		require.Contains(t, string(out), level+":")
	}
}

// A command that exceeds a limit is ended, and only named secrets reach
// commands.
func TestLimitsAndSecrets(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "MY_TOKEN=hidden", "OTHER_TOKEN=passed", "PLAIN=plain")
	s := p.serve("--max-file-size", "1M", "--max-open-files", "64", "--pass-secret", "OTHER_TOKEN")
	r := s.bash("head -c 2000000 /dev/zero > big; stat -c %s big; ulimit -n; echo $MY_TOKEN-$OTHER_TOKEN-$PLAIN")
	require.Contains(t, r.Text, "1048576\n64\n-passed-plain\n")
	r = s.bash("echo $API_KEY-$A", "env", map[string]string{"API_KEY": "k", "A": "b", "LD_PRELOAD": "x"})
	require.Contains(t, r.Text, "-b\n")
	require.Contains(t, r.Text, "not passed")
	require.Contains(t, r.Text, "API_KEY, LD_PRELOAD")
	require.Equal(t, "INVALID_PARAMS", s.bash("true", "env", map[string]string{"A B": "x"}).Code)
	s = p.serve("--max-memory", "64M", "--sandbox", "off")
	r = s.bash("exec 2>/dev/null; x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 30")
	require.Equal(t, "memory", text(t, r, "ending"), r.Text)
	require.Contains(t, r.Text, "over its memory")
	require.False(t, r.IsError)
}

// A working directory that a link leads out of the roots is not kept.
func TestSessionStaysInTheRoots(t *testing.T) {
	p := newPlace(t)
	p.write("outside/file", "x")
	require.NoError(t, os.Symlink(filepath.Join(p.dir, "outside"), filepath.Join(p.root, "link")))
	s := p.serve("--sandbox", "off")
	r := s.bash("cd link")
	require.Contains(t, r.Text, "is outside the roots")
	require.Contains(t, s.bash("pwd").Text, p.root+"\n")
	// A forged one is not kept either, nor are forged variables.
	forged := `report=$(ls -d "$TMPDIR"/.toolroom-report 2>/dev/null || echo "$TMPDIR/.toolroom-report"); trap - EXIT; ` +
		`printf '%s\n\0declare -x LD_PRELOAD="/x.so"\ndeclare -x GOOD="1"\ndeclare -x PATH="."\n' "` + filepath.Join(p.dir, "outside") + `" > "$report"; kill -9 $$`
	s.bash(forged)
	r = s.bash("pwd; echo [$LD_PRELOAD] [$GOOD]; case $PATH in *.:*|.) echo bad;; esac")
	require.Contains(t, r.Text, p.root+"\n[] [1]\n")
	require.NotContains(t, r.Text, "bad")
}
