//go:build linux && (amd64 || arm64)

package sandbox

import (
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nameMax is the longest name of an entry, with its zero byte (limits.h).
const nameMax = 256

// LstatAtHand is Lstat for an entry that the kernel most likely has in memory,
// on a file system of this machine (see Local). It does not tell the scheduler
// of the system call, which takes longer than looking up such an entry: where
// that has to wait for a disk after all, so does a processor. And it makes no
// garbage.
func (d *Dir) LstatAtHand(name string) (Stat, error) {
	if len(name) >= nameMax || checkComponent(name) != nil {
		return d.Lstat(name)
	}
	var path [nameMax]byte
	copy(path[:], name)
	var raw unix.Stat_t
	_, _, errno := unix.RawSyscall6(unix.SYS_NEWFSTATAT, uintptr(d.fd.Load()),
		uintptr(unsafe.Pointer(&path)), uintptr(unsafe.Pointer(&raw)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	if errno != 0 {
		return Stat{}, &fs.PathError{Op: "lstat", Path: d.join(name), Err: errno}
	}
	return statOf(&raw), nil
}
