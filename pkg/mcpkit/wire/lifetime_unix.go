//go:build unix

package wire

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// parentInterval is the time between checks of the parent on systems that
// cannot report its end.
const parentInterval = time.Second

// waitForExitReason waits until stdout's reader or the parent process is gone
// and returns stdoutClosed or parentGone, or until ctx ends and returns "". It
// blocks in poll(2), so waiting costs nothing.
func waitForExitReason(ctx context.Context, stdout *os.File) string {
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
	parent := os.Getppid()
	pidfd := openParentPidfd(parent)
	timeout := int(parentInterval / time.Millisecond)
	if pidfd >= 0 {
		defer unix.Close(pidfd)
		timeout = -1
	}
	out := -1
	if stdout != nil {
		out = int(stdout.Fd())
	}
	fds := []unix.PollFd{
		{Fd: int32(wakeRead.Fd()), Events: unix.POLLIN},
		{Fd: int32(out)}, // errors and hang-up only
		{Fd: int32(pidfd), Events: unix.POLLIN},
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
		case fds[2].Revents != 0 || os.Getppid() != parent:
			return parentGone
		}
	}
}
