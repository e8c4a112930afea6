//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

var jobNamed = regexp.MustCompile(` as job (j\w+)`)

// withPty copies pty, which runs a program on a terminal, into the root.
func withPty(t *testing.T, p *place) {
	t.Helper()
	mcpkittest.CopyProgram(t, mcpkittest.Build(t, "./tools/bash/testdata/pty"), filepath.Join(p.root, "pty"))
}

// together runs commands concurrently; none of them becomes a job merely by the
// time it takes.
func (s server) together(commands map[string]string) map[string]mcpkittest.Result {
	s.t.Helper()
	calls, results := map[string]string{}, map[string]mcpkittest.Result{}
	for command := range commands {
		calls[command] = s.Go("tools/call", mcpkittest.CallParams("bash", arg("command", command, "timeout", 600_000, "auto_background_after", 600_000)))
	}
	for command, id := range calls {
		r, err := mcpkittest.ParseResult(s.Answer(id).Result)
		require.NoError(s.t, err, command)
		results[command] = r
	}
	return results
}

// A command that waits for a terminal is answered while it waits: an editor
// without a terminal, which has drawn its screen, and programs on a terminal
// without typed input. Keeps fixed: vim used up its whole timeout.
func TestTerminalIsNoticed(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	usable, missing := levels(t)
	for _, level := range usable {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			withPty(t, p)
			p.write("root/a.txt", "text\n")
			s := p.serve("--sandbox", level)
			commands := map[string]string{
				`printf '\033[?1049h\033[24;1H1,1 All'; exec -a vim sleep 600`: "sleep",
				`printf '\033[2;1H~\033[3;1H~\033[1;1H'; sh -c 'sleep 600; :'`: "sleep",
			}
			if level != "L1" { // which has no terminals
				for command, name := range map[string]string{
					`./pty cat`:                      "cat",
					`./pty bash -c 'read -r -n 1 x'`: "bash",
					`./pty -raw sleep 600`:           "sleep",
				} {
					commands[command] = name
				}
			}
			for command, r := range s.together(commands) {
				require.False(t, r.IsError, "%s: %s", command, r.Text)
				waits := "seems to wait for a terminal (" + commands[command] + ")"
				require.Contains(t, r.Text, "It "+waits+", which commands do not have", command)
				id := jobNamed.FindStringSubmatch(r.Text)[1]
				require.Contains(t, s.job("action", "poll", "job_id", id, "wait_ms", 50_000).Text, waits, command)
			}
		})
	}
	t.Logf("levels not on this machine: %v", missing)
}

// A command that is only quiet, or busy, does not count as waiting.
func TestQuietIsNoWaiting(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	p := newPlace(t)
	withPty(t, p)
	s := p.serve()
	for command, r := range s.together(map[string]string{
		`sleep 3`:                         "",
		`echo compiling; sleep 3`:         "",
		`./pty sleep 3`:                   "",
		`printf '\033[2J\033[H'; sleep 3`: "",
		`printf '\033[?1049h\033[5;5Hx\033[?1049l'; sleep 3`:         "",
		`printf '\033[5;5Hx'; timeout 3 sh -c 'while :; do :; done'`: "",
		`printf '\033[31mred\033[0m'; sleep 3`:                       "",
		`echo 'stdin is not a terminal' >&2; sleep 3`:                "",
	}) {
		require.Contains(t, "\n"+r.Text, "\nexit ", command)
	}
}

// A one-shot call cannot manage a job: a waiting command is ended, and the
// answer says so.
func TestTerminalInASingleCall(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	p := newPlace(t)
	withPty(t, p)
	cmd := exec.Command(mcpkittest.Build(t, "./tools/bash"), "--root", p.root, "--state", p.kept, "--call", `{"command":"./pty cat"}`)
	cmd.Env = p.env
	out, err := cmd.Output()
	require.NoError(t, err)
	got := string(out)
	require.True(t, strings.HasPrefix(got, `{"result":"note: killed, because it waited for a terminal (cat), which commands do not have: `), got)
}

// Progress shows the last line with text, and counts lines as people do.
func TestProgressTellsTheLastLine(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	p := newPlace(t)
	s := p.serve()
	for i, test := range []struct{ print, want string }{
		{`printf 'only\n'`, ", 1 line: only"},
		{`printf 'one\ntwo\n\n \n'`, ", 4 lines: two"},
		{`printf 'one\n\033[32mtwo  of\033[0m 3\r'`, ", 2 lines: two of 3"},
		{`printf ''`, ", no output yet"},
		{`printf '\n\n'`, ", 2 lines"},
	} {
		flag := filepath.Join(p.root, "go")
		params := mcpkittest.CallParams("bash", map[string]any{"command": test.print + "; until [ -e go ]; do sleep 0.05; done; rm go"})
		token := string(rune('a' + i))
		params["_meta"] = map[string]any{"progressToken": token}
		id := s.Go("tools/call", params)
		var messages []string
		within(t, "progress with "+test.want, func() bool {
			messages = nil
			for _, n := range s.Notifications("notifications/progress") {
				var progress struct {
					Token   string `json:"progressToken"`
					Message string `json:"message"`
				}
				require.NoError(t, json.Unmarshal(n.Params, &progress))
				if progress.Token == token {
					messages = append(messages, progress.Message)
				}
			}
			return len(messages) > 0 && strings.HasSuffix(messages[len(messages)-1], test.want)
		})
		require.NoError(t, os.WriteFile(flag, nil, 0o644))
		require.Nil(t, s.Answer(id).Error)
	}
}

// With --text a one-shot call prints the output and exits with the command's
// status; without it, the status is in the text and the call succeeds.
func TestStatusOfASingleCall(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	p := newPlace(t)
	for _, test := range []struct {
		flag, command string
		status        int
	}{
		{"--text", "echo hi; exit 7", 7}, {"--text", "true", 0}, {"--text", "sudo ls", 1}, {"--text=false", "exit 7", 0},
	} {
		args := []string{"--root", p.root, "--state", p.kept, test.flag, "--call", toJSON(t, arg("command", test.command))}
		cmd := exec.Command(mcpkittest.Build(t, "./tools/bash"), args...)
		cmd.Env = p.env
		out, _ := cmd.Output()
		require.Equal(t, test.status, cmd.ProcessState.ExitCode(), "%s %s: %s", test.flag, test.command, out)
		if test.status == 7 {
			require.True(t, strings.HasPrefix(string(out), "hi\nexit 7 "), string(out))
		}
	}
}
