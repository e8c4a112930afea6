package upstream

import (
	"os"

	"golang.org/x/sys/unix"
)

// waitWithoutThread returns when a child has ended, or when that cannot be detected
// without a blocked thread: wait4 blocks a thread with its stacks while the child runs.
// Linux before 5.10 and some emulations have no alternative.
func waitWithoutThread(child *os.Process) {
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
	raw.Read(func(fd uintptr) bool { //nolint:errcheck // the caller's Wait handles errors
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, 0)
		return err != unix.EINTR && n != 0
	})
}
