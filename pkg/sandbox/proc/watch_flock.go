//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proc

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

// linksOf returns the number of hard links of a file.
func linksOf(info os.FileInfo) uint64 {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Nlink)
	}
	return 1
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
