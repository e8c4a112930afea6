//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package writeguard

import (
	"errors"
	"os"
	"syscall"
)

// tryFlock takes (lockExclusive, lockShared) or releases (lockRelease) the lock
// of an open file without waiting. It returns false if another open file holds
// a conflicting lock.
func tryFlock(f *os.File, operation int) bool {
	for {
		err := syscall.Flock(int(f.Fd()), operation|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err == nil
		}
	}
}

const (
	// lockShared, lockExclusive and lockRelease are the operations of tryFlock.
	lockShared    = syscall.LOCK_SH
	lockExclusive = syscall.LOCK_EX
	lockRelease   = syscall.LOCK_UN
)
