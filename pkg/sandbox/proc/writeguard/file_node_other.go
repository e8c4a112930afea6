//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package writeguard

import (
	"os"
)

// openNoFollow is 0: this system has no such flag.
const openNoFollow = 0

// deviceAndInode returns zeros: this system does not show device and inode.
func deviceAndInode(os.FileInfo) [2]uint64 { return [2]uint64{} }
