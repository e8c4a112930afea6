//go:build linux

package supervise_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// portable is a command under the supervisor of macOS, with Linux's process table.
type portable struct {
	t       *testing.T
	control *os.File
	reports *bufio.Reader
	output  *os.File
	status  chan int
}

// startPortable starts a script.
func startPortable(t *testing.T, script string) *portable {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	p := &portable{t: t, control: os.NewFile(uintptr(ends[0]), "control"), status: make(chan int, 1)}
	p.reports = bufio.NewReader(p.control)
	go func() {
		theirs := os.NewFile(uintptr(ends[1]), "control")
		defer theirs.Close()
		p.status <- supervise.SupervisePortable(theirs)
	}()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	p.output = read
	s := &supervise.Spec{Level: supervise.Off, Argv: []string{"/bin/bash", "-c", script}, Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}, GraceMS: 100, WaitMS: 100}
	require.NoError(t, unix.Sendmsg(ends[0], supervise.AppendMessage(nil, s), unix.UnixRights(int(null.Fd()), int(write.Fd()), int(write.Fd())), nil, 0))
	null.Close()
	write.Close()
	t.Cleanup(func() { p.control.Close(); p.output.Close() })
	require.True(t, p.next().Ready)
	require.NotZero(t, p.next().Started)
	return p
}

// next returns the next report.
func (p *portable) next() (r supervise.Report) {
	p.t.Helper()
	require.NoError(p.t, supervise.ReadMessage(p.reports, &r))
	require.Empty(p.t, r.Error)
	return r
}

// line returns the first line of the output.
func (p *portable) line() string {
	p.t.Helper()
	line, err := bufio.NewReader(p.output).ReadString('\n')
	require.NoError(p.t, err)
	return strings.TrimSpace(line)
}

// send sends a message.
func (p *portable) send(m supervise.ControlMessage) {
	p.t.Helper()
	_, err := p.control.Write(supervise.AppendMessage(nil, &m))
	require.NoError(p.t, err)
}

// requireGone waits until a process has ended.
func requireGone(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		return err != nil || strings.Contains(string(text), ") Z ") || syscall.Kill(number, 0) != nil
	}, 10*time.Second, 5*time.Millisecond, "process %s is still running", pid)
}

func TestPortableSupervisorReportsTheEnd(t *testing.T) {
	p := startPortable(t, "echo hello; exit 7")
	require.Equal(t, "hello", p.line())
	end := p.next()
	require.True(t, end.Exited && end.Done)
	require.Equal(t, 7, syscall.WaitStatus(end.Status).ExitStatus())
	require.Zero(t, <-p.status)
}

func TestPortableSupervisorEndsWhatIsLeft(t *testing.T) {
	p := startPortable(t, "(trap '' TERM; exec sleep 600) & echo $!")
	pid := p.line()
	require.True(t, p.next().Exited)
	end := p.next()
	require.True(t, end.Done)
	require.Equal(t, 1, end.Left, "a process that ignores TERM was killed")
	requireGone(t, pid)
}

// A process in a session of its own is found as a child of a known process.
func TestPortableSupervisorFindsDetachedProcesses(t *testing.T) {
	p := startPortable(t, "setsid bash -c 'echo $$; sleep 600 & exec sleep 600' & sleep 5")
	pid := p.line()
	for !p.next().Done {
	}
	requireGone(t, pid)
}

func TestPortableSupervisorStops(t *testing.T) {
	p := startPortable(t, "trap '' TERM; echo $$; while :; do sleep 0.05; done")
	pid := p.line()
	p.send(supervise.ControlMessage{Stop: true})
	end := p.next()
	require.True(t, end.Exited)
	require.Equal(t, syscall.SIGKILL, syscall.WaitStatus(end.Status).Signal())
	for !end.Done {
		end = p.next()
	}
	requireGone(t, pid)

	p = startPortable(t, "trap 'echo got; exit 3' USR1; echo ready; while :; do sleep 0.05; done")
	require.Equal(t, "ready", p.line())
	p.send(supervise.ControlMessage{Signal: int(syscall.SIGUSR1)})
	for end = p.next(); !end.Exited; end = p.next() {
	}
	require.Equal(t, 3, syscall.WaitStatus(end.Status).ExitStatus())
}

// The end of the server, even by kill -9, closes the socket: everything is killed.
func TestPortableSupervisorOutlivesNoServer(t *testing.T) {
	p := startPortable(t, "trap '' TERM HUP; echo $$; sleep 600 & wait")
	pid := p.line()
	p.control.Close()
	requireGone(t, pid)
	require.Zero(t, <-p.status)
}
