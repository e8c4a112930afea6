//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package writeguard

import (
	"errors"
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW

// nodeOf returns a file's device and inode.
func nodeOf(info os.FileInfo) (node [2]uint64) {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		node = [2]uint64{uint64(sys.Dev), uint64(sys.Ino)}
	}
	return node
}

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
