package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readable reports whether the server can open a file for reading.
func readable(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// ownFile reports whether a file belongs to this process's effective user.
func ownFile(info os.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}
