package cli_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	hostconfig "github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// ignored are the signals that the tests' parent ignores, as nohup and a shell's & do,
// and children inherit. signal.Ignored forgets them once a test has run a host in this
// process.
var ignored = map[os.Signal]bool{syscall.SIGHUP: signal.Ignored(syscall.SIGHUP), syscall.SIGINT: signal.Ignored(syscall.SIGINT)}

// TestNoChildOutlivesTheHost ends the host in every way there is, over a
// server and its child that both ignore the end of their input and SIGTERM.
func TestNoChildOutlivesTheHost(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, 0} {
		t.Run(fmt.Sprint(sig), func(t *testing.T) {
			if ignored[sig] {
				t.Skip("these tests are run by something like nohup, and what ignores a signal hands that on")
			}
			t.Parallel()
			dir := t.TempDir()
			child, grandchild := filepath.Join(dir, "child"), filepath.Join(dir, "grandchild")
			config := filepath.Join(dir, "c.yaml")
			require.NoError(t, writeFile(config, "servers: {fix: {command: fixture, args: [-era, legacy, -start, deaf, -pid, "+child+"]}}"))
			host := exec.Command("mcp-host", "stdio", "--config", config, "--state", dir)
			in, err := host.StdinPipe()
			require.NoError(t, err)
			out, err := host.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, host.Start())
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fix__fork","arguments":{"text":%q}}}`+"\n", grandchild) //nolint:errcheck // the answer tells
			_, err = bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			pids := []int{host.Process.Pid, pidIn(t, child), pidIn(t, grandchild)}
			for _, pid := range pids {
				require.True(t, mcpkittest.IsRunning(pid))
			}
			if sig == 0 {
				require.NoError(t, in.Close())
			} else {
				require.NoError(t, host.Process.Signal(sig))
			}
			for _, pid := range pids {
				require.Eventually(t, func() bool { return !mcpkittest.IsRunning(pid) }, time.Minute, 10*time.Millisecond)
			}
			host.Wait() //nolint:errcheck // how it ended is above
		})
	}
}

// A host whose terminal is closed ends as one that is told to: it lets its servers end, and
// says so. One that was started by nohup goes on.
func TestAHostEndsWithItsTerminal(t *testing.T) {
	if ignored[syscall.SIGHUP] {
		t.Skip("these tests are run by something like nohup, and what ignores a signal hands that on")
	}
	for _, started := range [][]string{{"mcp-host"}, {"nohup", "mcp-host"}} {
		log := &transcript{}
		host := exec.Command(started[0], append(started[1:], "serve", "--listen", "127.0.0.1:0", "--state", t.TempDir())...)
		host.Stdout, host.Stderr = log, log
		require.NoError(t, host.Start())
		ended := make(chan error, 1)
		go func() { ended <- host.Wait() }()
		log.waitFor(t, "http://127.0.0.1:")
		require.NoError(t, host.Process.Signal(syscall.SIGHUP))
		if len(started) > 1 {
			require.Never(t, func() bool { return len(ended) > 0 }, 300*time.Millisecond, 50*time.Millisecond)
			require.NoError(t, host.Process.Signal(syscall.SIGTERM))
		}
		require.NoError(t, <-ended, "%s", log)
	}
}

// A configuration may be a pipe; a signal ends a host that waits for it.
func TestASignalEndsAHostThatWaitsForItsConfiguration(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, command := range []string{"stdio", "servers"} {
		host := exec.Command("mcp-host", command, "--config", pipe)
		require.NoError(t, host.Start())
		ended := make(chan error, 1)
		go func() { ended <- host.Wait() }()
		var writer *os.File // the pipe can be opened once the host reads it
		require.Eventually(t, func() (open bool) {
			var err error
			writer, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			return err == nil
		}, time.Minute, 5*time.Millisecond)
		defer writer.Close()
		require.NoError(t, host.Process.Signal(syscall.SIGTERM))
		select {
		case <-ended:
		case <-time.After(time.Minute):
			require.NoError(t, host.Process.Kill())
			<-ended
			t.Fatalf("%s does not end", command)
		}
	}
}

// A chat that is killed in the middle of a turn has kept what was said, and the steps that
// were done; it is gone on with from there.
func TestAChatThatIsKilledHasKeptItsTurn(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	require.NoError(t, writeFile(filepath.Join(dir, "script.yaml"), `
answers:
  - {when: {message: go}, text: I look., calls: [{name: fix__echo, args: {text: here}}]}
  - {when: {result: here}, delay: 1h, text: never}
  - {text: "{{message}}"}
`))
	require.NoError(t, writeFile(config, "servers: {fix: {command: fixture, args: [-era, legacy]}}\nmodels: {default: play, providers: {play: {kind: scripted, file: script.yaml}}}\n"))
	chat := exec.Command("mcp-host", "chat", "-p", "go", "--config", config, "--state", dir)
	require.NoError(t, chat.Start())
	var messages []llm.Message
	require.Eventually(t, func() bool {
		a, err := core.Open(hostconfig.Config{State: dir, Store: backend.Config{Dir: dir}})
		require.NoError(t, err)
		defer a.Close()
		all, err := a.Sessions().List(t.Context())
		require.NoError(t, err)
		if len(all) == 1 {
			messages, err = a.Sessions().Messages(t.Context(), all[0].ID)
			require.NoError(t, err)
		}
		return len(messages) == 3
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, chat.Process.Kill())
	chat.Wait() //nolint:errcheck // it was killed
	out, err := exec.Command("mcp-host", "chat", "-p", "and now?", "--continue", "--json", "--config", config, "--state", dir).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), `"text":"and now?"`)
}

func pidIn(t *testing.T, file string) (pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	return pid
}
