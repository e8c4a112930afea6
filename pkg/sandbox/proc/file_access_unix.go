//go:build linux || darwin

package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// canRead reports whether the server itself can open the file at path for
// reading.
func canRead(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// isOwnFile reports whether a file belongs to this process's effective user.
func isOwnFile(info os.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}
