package mcpkit

import (
	"os"

	"golang.org/x/sys/unix"
)

// openParent returns a descriptor that becomes readable when the parent
// process ends, or -1. Unlike PR_SET_PDEATHSIG it does not mistake the end of
// the parent's thread that started us for the end of the parent.
func openParent(parent int) int {
	if parent <= 0 { // in another pid namespace
		return -1
	}
	fd, err := unix.PidfdOpen(parent, 0)
	if err != nil {
		return -1
	}
	if os.Getppid() != parent { // gone, and the id may be someone else's
		unix.Close(fd)
		return -1
	}
	return fd
}
