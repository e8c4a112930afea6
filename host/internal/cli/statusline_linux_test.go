package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"golang.org/x/sys/unix"
)

// A terminal is a pseudo-terminal that programs write to, and what its screen
// shows of that.
type terminal struct {
	tty  *os.File
	keys *os.File // what is typed

	mu   sync.Mutex
	text strings.Builder // everything that was written
	end  chan struct{}
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	var n int
	control, err := master.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, control.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}))
	require.NoError(t, err)
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}))
	term := &terminal{tty: tty, keys: master, end: make(chan struct{})}
	go func() {
		defer close(term.end)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			term.mu.Lock()
			term.text.Write(buf[:n])
			term.mu.Unlock()
			if err != nil { // the last program has closed it
				return
			}
		}
	}()
	t.Cleanup(func() {
		tty.Close() //nolint:errcheck // it may be closed
		<-term.end
		master.Close() //nolint:errcheck // it was read
	})
	return term
}

func (term *terminal) written() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.text.String()
}

// sees waits until something was shown.
func (term *terminal) sees(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(term.written(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			require.Contains(t, term.written(), text)
		}
	}
}

// screen returns the text on the screen after the last program has closed it.
func (term *terminal) screen(t *testing.T) string {
	t.Helper()
	require.NoError(t, term.tty.Close())
	<-term.end
	var lines []string
	for line := range strings.SplitSeq(term.written(), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if i := strings.LastIndex(line, "\r\x1b[K"); i >= 0 {
			line = line[i+len("\r\x1b[K"):]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// at starts mcp-host with its standard error at a terminal; done returns its
// standard output and status once it has ended.
func (term *terminal) at(t *testing.T, env []string, args ...string) (cmd *exec.Cmd, done func() (string, int)) {
	t.Helper()
	var out strings.Builder
	cmd = exec.Command("mcp-host", args...)
	cmd.Env = append(append(os.Environ(), "TERM=xterm"), env...)
	cmd.Stdout, cmd.Stderr = &out, term.tty
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // likewise
	})
	return cmd, func() (string, int) {
		cmd.Wait() //nolint:errcheck // the status says it
		return out.String(), cmd.ProcessState.ExitCode()
	}
}

// gated is a server in sh that starts, and answers its one tool, when a file is
// there. Before that the call sends progress and a log message.
const gated = `#!/bin/sh
until [ -e "$1" ]; do sleep 0.02; done
while read -r line; do
  id=$(echo "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  token=$(echo "$line" | sed -n 's/.*"progressToken":\([^,}]*\).*/\1/p')
  case $line in
  *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"gated","version":"1"}}}';;
  *'"tools/list"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"work","description":"Works.","inputSchema":{"type":"object"}}]}}';;
  *'"tools/call"'*)
    printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":"the oven is cold"}}'
    printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'$token',"progress":1,"total":4,"message":"first\nheating \u001b[31mup"}}'
    until [ -e "$2" ]; do sleep 0.02; done
    printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"done"}]}}';;
  *) [ -z "$id" ] || printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}';;
  esac
done
`

// kitchen is a configuration with a gated server and an ordinary one.
func kitchen(t *testing.T) (config, started, finished string) {
	t.Helper()
	dir := t.TempDir()
	config, started, finished = filepath.Join(dir, "toolroom.yaml"), filepath.Join(dir, "started"), filepath.Join(dir, "finished")
	mcpkittest.WriteProgram(t, filepath.Join(dir, "gated"), []byte(gated))
	require.NoError(t, writeFile(config, "servers:\n  cook: {command: ./gated, args: ["+started+", "+finished+"], era: legacy, start_timeout: 60s}\n  fix: {command: fixture, args: [-era, legacy]}\n"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("XDG_CONFIG_HOME", dir)
	return config, started, finished
}

func TestATerminalShowsWhatIsWaitedFor(t *testing.T) {
	for _, args := range [][]string{{"tools"}, {"tools", "cook__work"}, {"doctor"}} {
		config, started, _ := kitchen(t)
		term := newTerminal(t)
		_, done := term.at(t, nil, append(args, "--config", config)...)
		term.sees(t, "waiting for cook (")
		require.NoError(t, writeFile(started, ""))
		out, status := done()
		require.Zero(t, status, "%s", out)
		require.Contains(t, out, "cook")
		require.NotContains(t, term.screen(t), "waiting", "it is erased")
	}
}

func TestATerminalShowsHowACallGoesOn(t *testing.T) {
	config, started, finished := kitchen(t)
	term := newTerminal(t)
	_, done := term.at(t, nil, "call", "cook__work", "--config", config)
	term.sees(t, "waiting for cook (")
	require.NoError(t, writeFile(started, ""))
	term.sees(t, "mcp-host: cook__work: warning: the oven is cold")
	term.sees(t, `: 25 %: heating \u001b[31mup`)
	require.NoError(t, writeFile(finished, ""))
	out, status := done()
	require.Zero(t, status)
	require.Equal(t, "done\n", out)
	require.Equal(t, "mcp-host: cook__work: warning: the oven is cold\n", term.screen(t))
}

func TestNothingIsShownWhereItWouldBeInTheWay(t *testing.T) {
	for _, args := range [][]string{{"--quiet"}, {"--json"}, {"TERM=dumb"}} {
		config, started, finished := kitchen(t)
		require.NoError(t, writeFile(finished, ""))
		term := newTerminal(t)
		var env []string
		if strings.Contains(args[0], "=") {
			args, env = nil, args
		}
		_, done := term.at(t, env, append([]string{"call", "cook__work", "--config", config}, args...)...)
		time.AfterFunc(time.Second, func() { writeFile(started, "") }) //nolint:errcheck // then the test does not end
		_, status := done()
		require.Zero(t, status, "%s", term.written())
		require.Empty(t, term.screen(t))
	}
	// In a pipe there is no line either; what a call says is shown on request.
	config, started, finished := kitchen(t)
	require.NoError(t, writeFile(started, ""))
	require.NoError(t, writeFile(finished, ""))
	status, out, errs := mcpHost(t, "call", "cook__work", "--config", config)
	require.Zero(t, status)
	require.Equal(t, "done\n", out)
	require.Empty(t, errs)
	status, _, errs = mcpHost(t, "call", "--progress", "cook__work", "--config", config)
	require.Zero(t, status)
	require.Equal(t, "mcp-host: cook__work: warning: the oven is cold\nmcp-host: cook__work: 25 %: heating \\u001b[31mup\n", errs)
}

func TestAChatShowsWhatItWaitsFor(t *testing.T) {
	config, started, _ := kitchen(t)
	term := newTerminal(t)
	_, done := term.at(t, []string{"OPENAI_API_KEY=", "ANTHROPIC_API_KEY=", "GEMINI_API_KEY="}, "chat", "--model", "command", "-p", "fix__echo text=hello", "--config", config)
	term.sees(t, "waiting for cook (")
	require.NoError(t, writeFile(started, ""))
	out, status := done()
	require.Zero(t, status, "%s", out)
	require.Contains(t, out, "hello")
	require.NotContains(t, term.screen(t), "waiting")
}
