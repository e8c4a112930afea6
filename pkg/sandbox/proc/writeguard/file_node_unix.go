//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package writeguard

import (
	"os"
	"syscall"
)

// openNoFollow is the flag of open(2) that makes it fail for a symbolic link.
const openNoFollow = syscall.O_NOFOLLOW

// deviceAndInode returns device and inode of a file, which identify it while it
// exists.
func deviceAndInode(info os.FileInfo) (node [2]uint64) {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		node = [2]uint64{uint64(sys.Dev), uint64(sys.Ino)}
	}
	return node
}
