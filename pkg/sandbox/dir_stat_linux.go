package sandbox

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// statOfInfo converts an fs.FileInfo of package os, with the owner, identity
// and change time in its Sys.
func statOfInfo(info fs.FileInfo) Stat {
	if raw, ok := info.Sys().(*syscall.Stat_t); ok {
		st := Stat{
			Mode: info.Mode(), Size: raw.Size, ModTime: info.ModTime(),
			ChangeTime: time.Unix(int64(raw.Ctim.Sec), int64(raw.Ctim.Nsec)),
			Dev:        uint64(raw.Dev), Ino: raw.Ino, Nlink: uint64(raw.Nlink), UID: raw.Uid, GID: raw.Gid,
		}
		return st
	}
	return Stat{Mode: info.Mode(), Size: info.Size(), ModTime: info.ModTime(), ChangeTime: info.ModTime()}
}

// statOf converts the result of fstat(2).
func statOf(raw *unix.Stat_t) Stat {
	return Stat{
		Mode: modeOf(raw.Mode), Size: raw.Size,
		ModTime:    time.Unix(int64(raw.Mtim.Sec), int64(raw.Mtim.Nsec)),
		ChangeTime: time.Unix(int64(raw.Ctim.Sec), int64(raw.Ctim.Nsec)),
		Dev:        uint64(raw.Dev), Ino: raw.Ino, Nlink: uint64(raw.Nlink), UID: raw.Uid, GID: raw.Gid,
	}
}

// modeOf converts st_mode (inode(7)) to permission, setuid, setgid, sticky and
// type bits.
func modeOf(raw uint32) fs.FileMode {
	mode := fs.FileMode(raw & 0o777)
	if raw&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if raw&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if raw&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	switch raw & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	}
	return mode
}
