//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package sandbox

import (
	"errors"
	"os"
	"syscall"
)

// guarded: a file's own lock excludes other writers of ours here.
const guarded = true

// TryLock takes the exclusive lock of an open file for as long as it is open
// (flock), without waiting. It goes with the process, however that ends.
func TryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, err
		}
	}
}
