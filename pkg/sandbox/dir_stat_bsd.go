//go:build darwin || freebsd || netbsd

package sandbox

import (
	"io/fs"
	"syscall"
	"time"
)

// openNonblock is added to the flags with which os.Root opens a file, so that a
// fifo does not block.
const openNonblock = syscall.O_NONBLOCK

// statOfInfo converts an fs.FileInfo of package os, with the owner, identity
// and change time in its Sys.
func statOfInfo(info fs.FileInfo) Stat {
	st := Stat{Mode: info.Mode(), Size: info.Size(), ModTime: info.ModTime(), ChangeTime: info.ModTime()}
	if raw, ok := info.Sys().(*syscall.Stat_t); ok {
		st.ChangeTime = time.Unix(int64(raw.Ctimespec.Sec), int64(raw.Ctimespec.Nsec))
		st.Dev, st.Ino, st.Nlink, st.UID, st.GID = uint64(raw.Dev), raw.Ino, uint64(raw.Nlink), raw.Uid, raw.Gid
	}
	return st
}
