//go:build unix

package wire_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

const echoPackage = "./pkg/mcpkit/testdata/echo"

// A process is a server running as a child process.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *os.File
	lines  *bufio.Reader
	stderr lockedBuffer
}

// A lockedBuffer may be read while it is being written.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startCmd(t, exec.Command(mcpkittest.Build(t, echoPackage), args...))
}

func startCmd(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd}
	cmd.Stderr = &p.stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	p.in = in
	out, outWrite, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, p.out = outWrite, out
	p.lines = bufio.NewReader(out)
	require.NoError(t, cmd.Start())
	outWrite.Close()
	t.Cleanup(func() {
		p.in.Close()
		p.out.Close()
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill() // it may just have ended
			_ = p.cmd.Wait()
		}
	})
	return p
}

func (p *process) send(line string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	require.NoError(p.t, err)
}

func (p *process) read() string {
	p.t.Helper()
	require.NoError(p.t, p.out.SetReadDeadline(time.Now().Add(maxTestWait)))
	line, err := p.lines.ReadString('\n')
	require.NoError(p.t, err, p.stderr.String())
	return line
}

// exit waits for the process to end and returns its exit code.
func (p *process) exit() int {
	p.t.Helper()
	timer := time.AfterFunc(maxTestWait, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	err := p.cmd.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		require.NoError(p.t, err)
	}
	require.True(p.t, p.cmd.ProcessState.Exited(), "it was ended by a signal: %v", p.cmd.ProcessState)
	return p.cmd.ProcessState.ExitCode()
}

// startChild makes the server start a child and returns the child's id.
func (p *process) startChild() int {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"child"}}`)
	return p.child()
}

// child waits until the server reports a started child and returns its id.
func (p *process) child() (pid int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		for line := range strings.Lines(p.stderr.String()) {
			if id, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "child "); ok && strings.HasSuffix(line, "\n") {
				var err error
				pid, err = strconv.Atoi(id)
				return err == nil
			}
		}
		return false
	}, maxTestWait, 2*time.Millisecond)
	return pid
}

// requireGone waits for a process to end.
func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !mcpkittest.IsRunning(pid) }, maxTestWait, 5*time.Millisecond)
}

// Defect 9: SIGTERM, SIGINT and SIGHUP end the server at once with exit code 0,
// and its children with it.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("these tests are run by something like nohup, and what ignores a signal hands that on")
			}
			p := start(t)
			child := p.startChild()
			require.NoError(t, p.cmd.Process.Signal(sig))
			require.Equal(t, 0, p.exit())
			requireGone(t, child)
		})
		t.Run("before anything, "+sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("ignored, as above")
			}
			p := start(t)
			p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			p.read()
			require.NoError(t, p.cmd.Process.Signal(sig))
			require.Equal(t, 0, p.exit())
		})
	}
}

// A client that closes the server's standard output has gone, even if it holds
// the input open and sends nothing more.
func TestStdoutClosed(t *testing.T) {
	p := start(t)
	child := p.startChild()
	require.NoError(t, p.out.Close())
	p.exit()
	requireGone(t, child)
}

// The parent dies without closing anything: another process still holds both
// pipes.
func TestParentDies(t *testing.T) {
	bin := mcpkittest.Build(t, echoPackage)
	p := startCmd(t, parentCommand(bin))
	p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	p.read()
	child := p.startChild()
	require.NoError(t, p.cmd.Process.Kill())
	requireGone(t, child)
	require.NoError(t, p.out.SetReadDeadline(time.Now().Add(maxTestWait)))
	_, err := io.ReadAll(p.lines)
	require.NoError(t, err, "the server ends, too")
}

// parentCommand runs the test binary as a process between this one and the
// server, which only waits: see TestBeParent.
func parentCommand(bin string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestBeParent$")
	cmd.Env = append(os.Environ(), "MCPKIT_PARENT_OF="+bin)
	return cmd
}

// TestBeParent is not a test: it runs in the parent process that dies.
func TestBeParent(t *testing.T) {
	bin := os.Getenv("MCPKIT_PARENT_OF")
	if bin == "" {
		return
	}
	cmd := exec.Command(bin)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		os.Exit(3)
	}
	os.Exit(0)
}

// A stray print of a tool's program goes to standard error.
func TestStdoutGuard(t *testing.T) {
	p := start(t, "--loud", "dir")
	p.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n", p.read())
	require.NoError(t, p.in.Close())
	require.Equal(t, 0, p.exit())
	require.Contains(t, p.stderr.String(), "a stray print of dir")
}

// Cancelling stops the work: no answer comes, and the child is gone.
func TestCancelKillsTheChild(t *testing.T) {
	p := start(t)
	child := p.startChild()
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	requireGone(t, child)
	p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	require.Contains(t, p.read(), `"id":2`)
}

// A panic in a tool is answered as INTERNAL; its stack is on standard error.
func TestPanicOfATool(t *testing.T) {
	p := start(t)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"panic"}}`)
	answer := p.read()
	require.Contains(t, answer, `"toolroom/code":"INTERNAL"`)
	require.NotContains(t, answer, "secret")
	require.NotContains(t, answer, ".go")
	require.NoError(t, p.in.Close())
	require.Equal(t, 0, p.exit())
	require.Contains(t, p.stderr.String(), "secret state")
	require.Contains(t, p.stderr.String(), "tools.go")
}

// A signal stops a one-shot call, too, with the exit code of a failure.
func TestOneShotSignal(t *testing.T) {
	p := start(t, "--call", `{"name":"child","params":{}}`)
	pid := p.child()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Contains(t, p.read(), `"error"`)
	require.Equal(t, 1, p.exit())
	requireGone(t, pid)
}
