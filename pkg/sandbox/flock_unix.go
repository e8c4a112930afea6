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

// Unlock frees the lock of an open file at once. To close the file does not
// where another goroutine starts a process: that process has the descriptor,
// too, until it runs its program (fork(2), flock(2)).
func Unlock(f *os.File) { syscall.Flock(int(f.Fd()), syscall.LOCK_UN) } //nolint:errcheck // closing the file frees the lock, too
