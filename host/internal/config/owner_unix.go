//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner and the group of another file. Only root can give a file to
// another user, so it changes nothing for other users.
func keepOwner(f *os.File, from fs.FileInfo) error {
	stat, ok := from.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(int(stat.Uid), int(stat.Gid))
}
