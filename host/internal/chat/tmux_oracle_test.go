//go:build oracle

package chat_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// pane is a terminal of tmux's with a shell in it: what it shows is what a person
// would see.
type pane struct {
	t    *testing.T
	tmux string
	name string
}

func newPane(t *testing.T, dir string, env ...string) *pane {
	t.Helper()
	p := &pane{t: t, tmux: oracle.Path(t, "tmux"), name: fmt.Sprintf("chat-%d", os.Getpid())}
	args := []string{"new-session", "-d", "-x", "100", "-y", "50", "-c", dir}
	for _, e := range env {
		args = append(args, "-e", e)
	}
	p.run(append(args, "env -u TMUX PS1='$ ' "+oracle.Path(t, "bash")+" --norc --noprofile")...)
	t.Cleanup(func() { p.run("kill-server") })
	p.sees("$ ")
	return p
}

func (p *pane) run(args ...string) string {
	p.t.Helper()
	out, err := exec.Command(p.tmux, append([]string{"-L", p.name, "-f", "/dev/null"}, args...)...).CombinedOutput()
	require.NoError(p.t, err, "%s: %s", args, out)
	return string(out)
}

func (p *pane) keys(keys ...string) {
	p.t.Helper()
	p.run(append([]string{"send-keys", "--"}, keys...)...)
}

// child is the program that the shell runs.
func (p *pane) child() *os.Process {
	p.t.Helper()
	shell := strings.TrimSpace(p.run("display-message", "-p", "#{pane_pid}"))
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", shell).Output()
	require.NoError(p.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(p.t, err)
	child, err := os.FindProcess(pid)
	require.NoError(p.t, err)
	return child
}

// says types a line.
func (p *pane) says(line string) {
	p.t.Helper()
	p.run("send-keys", "-l", "--", line)
	p.keys("Enter")
}

// sees waits until the end of what is shown matches, line by line: its last line is
// the last one that is not empty.
func (p *pane) sees(lines ...string) {
	p.t.Helper()
	var shown string
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		shown = strings.TrimRight(p.run("capture-pane", "-p", "-J", "-S", "-200"), " \n")
		have := strings.Split(shown, "\n")
		matches := len(have) >= len(lines)
		for i := 1; i <= len(lines) && matches; i++ {
			got, want := strings.TrimRight(have[len(have)-i], " "), strings.TrimRight(lines[len(lines)-i], " ")
			before, open := strings.CutSuffix(want, "…")
			matches = got == want || open && strings.HasPrefix(got, before)
		}
		if matches {
			return
		}
	}
	require.Fail(p.t, "not seen", "%s\n--- in\n%s", strings.Join(lines, "\n"), shown)
}

const tmuxScript = `
answers:
  - when: {message: "edit"}
    text: "I **look** first."
    calls: [{name: view, args: {file_path: a.txt}}]
  - when: {tool: view}
    calls: [{name: edit, args: {file_path: a.txt, old_string: "two", new_string: "zwei"}}]
  - when: {tool: edit}
    text: "# Done\n\n- it is *zwei* now"
  - when: {message: "wait"}
    calls: [{name: bash, args: {command: "sleep 600"}}]
  - when: {message: "evil"}
    text: "\e[2J\e]0;title\a\u009b31m日本語"
  - when: {message: "(?s)(.*)"}
    text: "You said: {{1}}"
`

// A person types, sees a tool run, approves a call, gives up a turn, takes a change
// back, ends the chat and goes on with it: all at a real terminal.
func TestAtATerminal(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"host", "tools/view", "tools/edit", "tools/bash"} {
		built := mcpkittest.Build(t, "./"+name)
		require.NoError(t, os.Link(built, filepath.Join(bin, "mcp-"+filepath.Base(name))))
	}
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("a.txt", "one\ntwo\n")
	write("answers.yaml", tmuxScript)
	write("toolroom.yaml", "models: {providers: {demo: {kind: scripted, file: answers.yaml}}}\npolicy: {rules: [{tool: edit, do: ask}]}\n")
	content := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		require.NoError(t, err)
		return string(text)
	}
	p := newPane(t, dir, "MCP_STATE_DIR="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+dir)
	start := filepath.Join(bin, "mcp-host") + " chat --config toolroom.yaml --root " + dir
	p.says(start)
	p.sees("demo; type /help for commands", ">")
	p.says("please edit")
	p.run("send-keys", "-l", "yyy") // before it is asked, which is no answer
	const allow = "Allow it? [y]es, [n]o, [a]lways edit in this chat, [e]dit:"
	diff := []string{"May edit of server edit be called? …", "  {", `    "file_path": "a.txt"`, "  }", "  -two", "  +zwei", allow}
	p.sees(append([]string{"I look first.", "✓ view a.txt  …"}, diff...)...)
	require.Equal(t, "one\ntwo\n", content())
	p.keys("n")
	p.sees("✗ edit a.txt  …", "Done", "", "• it is zwei now", ">")
	require.Equal(t, "one\ntwo\n", content())
	p.says("/edti")
	p.sees("/edti is not a command…", ">")
	p.says("please edit") // the refusal was of that one call
	p.sees(diff...)
	p.keys("e")
	p.sees(`arguments (Esc goes back): {"file_path":"a.txt",…`)
	p.keys("Escape")
	p.sees(allow)
	p.keys("y")
	p.sees("✓ edit a.txt  …", "Done", "", "• it is zwei now", ">")
	require.Equal(t, "one\nzwei\n", content())

	p.says("wait")
	p.sees("… bash sleep 600…")
	p.keys("C-c")
	p.sees("cancelled", ">")

	p.says(`several\`)
	p.run("send-keys", "-l", "--", "lines 日本")
	p.keys("M-Enter", "x", "BSpace", "e", "n", "d", "Enter")
	p.sees("> several", "  lines 日本", "  end", "You said: several", "lines 日本", "end", ">")
	p.run("set-buffer", "pasted\nin two lines")
	p.run("paste-buffer", "-p")
	p.keys("Enter")
	p.sees("You said: pasted", "in two lines", ">")
	p.says("evil")
	p.sees(`\u001b[2J\u001b]0;title\u0007\u009b31m日本語`, ">")

	p.says("/undo")
	p.sees("Undo the changes of 1 file? [y]es, [n]o:")
	p.keys("y")
	p.sees("undone: …", ">")
	require.Equal(t, "one\ntwo\n", content())

	p.keys("C-c")
	p.sees("Press Ctrl-C again, Ctrl-D or type /quit to end the chat", ">")
	p.keys("C-c")
	p.sees("$")
	p.says("stty -a | grep -o -- '[-]*\\becho\\b\\|[-]*\\bicanon\\b\\|[-]*\\bisig\\b' | sort | tr '\\n' ' '")
	p.sees("echo icanon isig $")

	p.says(start + " --continue")
	p.sees("last: …", ">")
	p.keys("Up", "Up", "Enter") // what was typed before
	p.sees(`\u001b[2J\u001b]0;title\u0007\u009b31m日本語`, ">")
	p.says("/session")
	p.sees("last: …", ">")
	p.says("wait")
	p.sees("… bash sleep 600…")
	p.run("send-keys", "-l", "typed meanwhile")
	p.says("")
	require.NoError(t, p.child().Signal(syscall.SIGTERM))
	p.sees("$")
	p.says("stty -a | grep -o -- '[-]*\\becho\\b' | sort | tr '\\n' ' '")
	p.sees("echo $")
}
