//go:build unix

package state

import (
	"io/fs"
	"os"
	"syscall"
)

// hasPosixModes is true: modes protect a directory from other users.
const hasPosixModes = true

// openNoFollow makes open fail for a symbolic link.
const openNoFollow = syscall.O_NOFOLLOW

// isOwnedByUser reports whether the file belongs to this user. It returns true if the
// owner is not known.
func isOwnedByUser(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid()
}
