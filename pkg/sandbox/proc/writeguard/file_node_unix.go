//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package writeguard

import (
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
