package wire

import (
	"os"

	"golang.org/x/sys/unix"
)

// openParentPidfd returns a descriptor that becomes readable when the parent
// process ends, or -1. The descriptor must be closed. Unlike PR_SET_PDEATHSIG,
// it does not report the end of just the parent's thread that started this
// process.
func openParentPidfd(parent int) int {
	if parent <= 0 { // in another pid namespace
		return -1
	}
	fd, err := unix.PidfdOpen(parent, 0)
	if err != nil {
		return -1
	}
	if os.Getppid() != parent { // gone, and another process may have its id
		unix.Close(fd)
		return -1
	}
	return fd
}
