//go:build linux && (amd64 || arm64)

package sandbox

import (
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls in this file are for entries that the kernel most likely has in its
// cache, on a local file system (see Local). They do not tell Go's scheduler of
// the system call, because that takes longer than most of these calls. If a call
// has to wait for a disk after all, its processor waits, too. They allocate
// nothing.

// maxCachedName is the longest name of an entry, with its zero byte (limits.h).
const maxCachedName = 256

// LstatCached is Lstat for an entry that is probably cached.
func (d *Dir) LstatCached(name string) (Stat, error) {
	if len(name) >= maxCachedName || checkComponent(name) != nil {
		return d.Lstat(name)
	}
	var path [maxCachedName]byte
	copy(path[:], name)
	var raw unix.Stat_t
	_, _, errno := unix.RawSyscall6(unix.SYS_NEWFSTATAT, uintptr(d.fd.Load()),
		uintptr(unsafe.Pointer(&path)), uintptr(unsafe.Pointer(&raw)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	if errno != 0 {
		return Stat{}, &fs.PathError{Op: "lstat", Path: d.join(name), Err: errno}
	}
	return statOf(&raw), nil
}

// OpenDirCached is OpenDir for a directory that is probably cached. Stat and Close
// of the result make the same assumption.
func (d *Dir) OpenDirCached(name string) (*Dir, error) {
	if len(name) >= maxCachedName || d.linked.hasAny() || checkComponent(name) != nil {
		return d.OpenDir(name)
	}
	var path [maxCachedName]byte
	copy(path[:], name)
	how := unix.OpenHow{Flags: openDirFlags, Resolve: sameMountFlags}
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT2, uintptr(d.fd.Load()),
		uintptr(unsafe.Pointer(&path)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
	if errno != 0 {
		return d.OpenDir(name) // which knows what else there is to try
	}
	child := newDir(int(fd), d.join(name))
	child.cached, child.linked = true, d.linked
	return child, nil
}

// fstatCached is unix.Fstat.
func fstatCached(fd int, st *unix.Stat_t) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(st)), 0); errno != 0 {
		return errno
	}
	return nil
}

// closeCached is unix.Close.
func closeCached(fd int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
