//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Advisory reports whether there are locks that hinder only programs that ask for
// them, so that a user's file can be locked while others read and write it.
const Advisory = true

// TryLock takes the exclusive lock of an open file for as long as it is open
// (flock), without waiting. It returns false if another holder has the lock, and
// an error if the file cannot be locked.
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

// Unlock frees the lock of an open file at once. Closing the file does not, if
// another goroutine starts a process: that process also has the descriptor until
// it runs its program (fork(2), flock(2)).
func Unlock(f *os.File) { syscall.Flock(int(f.Fd()), syscall.LOCK_UN) } //nolint:errcheck // closing the file frees the lock, too
