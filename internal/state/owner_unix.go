//go:build unix

package state

import (
	"io/fs"
	"os"
	"syscall"
)

const posixModes = true

// noFollow makes open fail for a symbolic link.
const noFollow = syscall.O_NOFOLLOW

// ours reports whether the file belongs to this user.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid()
}
