//go:build linux && (amd64 || arm64)

package sandbox

import (
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls in this file are for entries on a local file system (see Local) that the
// kernel probably has in its cache. They do not notify Go's scheduler of the system
// call, because the notification takes longer than most of these calls. If a call has
// to wait for a disk, its processor waits too. They allocate nothing.

// maxCachedName is the length of the longest entry name including its final NUL
// (limits.h).
const maxCachedName = 256

// LstatCached is Lstat, with the same results and errors. It is faster for an entry that
// the kernel has in its cache, and blocks a processor otherwise.
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

// OpenDirCached is OpenDir, with the same results and errors. It is faster for a
// directory that the kernel has in its cache, and blocks a processor otherwise; so do
// Stat and Close of the result.
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
		return d.OpenDir(name) // OpenDir handles the other cases
	}
	child := newDir(int(fd), d.join(name))
	child.cached, child.linked = true, d.linked
	return child, nil
}

// fstatCached is unix.Fstat without telling Go's scheduler: it is faster if the kernel
// does not wait for a disk, and blocks the thread's processor otherwise.
func fstatCached(fd int, st *unix.Stat_t) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(st)), 0); errno != 0 {
		return errno
	}
	return nil
}

// closeCached is unix.Close without telling Go's scheduler; see fstatCached.
func closeCached(fd int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
