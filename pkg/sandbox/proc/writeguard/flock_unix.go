//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package writeguard

import (
	"errors"
	"os"
	"syscall"
)

// flock takes (LOCK_EX, LOCK_SH) or releases (LOCK_UN) the lock of an open
// file without waiting. It returns false if another process holds it.
func flock(f *os.File, how int) bool {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err == nil
		}
	}
}

const (
	lockShared    = syscall.LOCK_SH
	lockExclusive = syscall.LOCK_EX
	lockNone      = syscall.LOCK_UN
)
