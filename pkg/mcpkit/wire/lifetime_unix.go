//go:build unix

package wire

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// parentCheckInterval is the time between checks of the parent on systems that
// cannot report its end.
const parentCheckInterval = time.Second

// A parentProcess is the process that was the parent at openParent.
type parentProcess struct {
	pid   int
	pidfd int // readable when the process has ended; -1 when the system has none
}

// openParent returns the current parent process. The caller closes it.
func openParent() parentProcess {
	pid := os.Getppid()
	return parentProcess{pid, openParentPidfd(pid)}
}

// close closes the descriptor of the process, if there is one.
func (p parentProcess) close() {
	if p.pidfd >= 0 {
		unix.Close(p.pidfd)
	}
}

// waitForExitReason waits until stdout's reader or the parent process is gone
// and returns stdoutClosed or parentEnded, or until ctx ends and returns "". It
// blocks in poll(2), so waiting costs nothing.
func waitForExitReason(ctx context.Context, stdout *os.File, parent parentProcess) string {
	wakeRead, wakeWrite, err := os.Pipe()
	if err != nil {
		<-ctx.Done()
		return ""
	}
	defer wakeRead.Close()
	stop := context.AfterFunc(ctx, func() { wakeWrite.Close() })
	defer func() {
		if stop() {
			wakeWrite.Close()
		}
	}()
	timeout := int(parentCheckInterval / time.Millisecond)
	if parent.pidfd >= 0 {
		timeout = -1
	}
	out := -1
	if stdout != nil {
		out = int(stdout.Fd())
	}
	fds := []unix.PollFd{
		{Fd: int32(wakeRead.Fd()), Events: unix.POLLIN},
		{Fd: int32(out)}, // errors and hang-up only
		{Fd: int32(parent.pidfd), Events: unix.POLLIN},
	}
	for {
		_, err := unix.Poll(fds, timeout)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN):
			<-ctx.Done()
			return ""
		case ctx.Err() != nil:
			return ""
		case err != nil:
		case fds[1].Revents != 0:
			return stdoutClosed
		case fds[2].Revents != 0 || os.Getppid() != parent.pid:
			return parentEnded
		}
	}
}
