//go:build unix

package upstream

import (
	"os"
	"syscall"
)

// attempter writes to a pipe as much as fits into it at once, and never waits.
// It spares a call the deadline that a write which may wait needs, and the
// timers that are behind it.
func attempter(file pipe) func(data []byte) (int, error) {
	f, ok := file.(*os.File)
	if !ok {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return func(data []byte) (n int, err error) {
		fault := raw.Write(func(fd uintptr) bool {
			n, err = syscall.Write(int(fd), data)
			return true
		})
		switch {
		case fault != nil:
			return 0, fault
		case err == syscall.EAGAIN || err == syscall.EINTR:
			return 0, nil
		}
		return max(n, 0), err
	}
}
