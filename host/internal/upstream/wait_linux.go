package upstream

import (
	"os"

	"golang.org/x/sys/unix"
)

// awaitEnd returns when a child that has not been waited for has ended, or
// when that cannot be known without a thread that waits: the system's call
// keeps one, and its stacks, for as long as the child runs. Systems before
// Linux 5.10, and some that only look like Linux, cannot.
func awaitEnd(child *os.Process) {
	fd, err := unix.PidfdOpen(child.Pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	file := os.NewFile(uintptr(fd), "a process")
	defer file.Close() //nolint:errcheck // nothing was written
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	raw.Read(func(fd uintptr) bool { //nolint:errcheck // what cannot be waited for here is waited for by the caller
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, 0)
		return err != unix.EINTR && n != 0
	})
}
