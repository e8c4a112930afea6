//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Advisory reports whether locks hinder only programs that ask for them. Then a
// user's file can be locked while other programs read and write it.
const Advisory = true

// TryLock takes the exclusive lock of an open file (flock) and does not wait.
// The lock is held until Unlock or until the file is closed. It returns false
// if another process or descriptor holds the lock, and an error if the file
// cannot be locked.
func TryLock(f *os.File) (locked bool, err error) {
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

// Unlock frees the lock of an open file at once. Closing the file is not enough
// if another goroutine starts a process: until that process runs its program,
// it has the descriptor, too, and with it the lock (fork(2), flock(2)).
func Unlock(f *os.File) { syscall.Flock(int(f.Fd()), syscall.LOCK_UN) } //nolint:errcheck // closing the file frees the lock, too
