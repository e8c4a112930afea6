package sandbox

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// writableDir is an open directory whose entries are written. Its methods take the name of
// one entry and follow no link.
type writableDir struct {
	fd int // O_PATH, so that a directory can be written that cannot be listed
	// anonymous means that new files have no name until they are complete. A crash
	// then leaves nothing behind.
	anonymous bool
}

// newWritableDir opens the directory dirfd again. It returns errNotDirectory for
// another file.
func newWritableDir(dirfd int, anonymous bool) (*writableDir, error) {
	fd, err := retryInterrupted(func() (int, error) {
		return unix.Openat(dirfd, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err == unix.ENOTDIR {
		return nil, errNotDirectory
	}
	if err != nil {
		return nil, err
	}
	return &writableDir{fd: fd, anonymous: anonymous}, nil
}

// writableDir implements object.
func (h *kernelObject) writableDir() (*writableDir, error) {
	defer runtime.KeepAlive(h)
	return newWritableDir(h.fd, procSelfFD() >= 0)
}

// writableDir implements object.
func (h *rootObject) writableDir() (*writableDir, error) {
	if h.dir == nil {
		return nil, errNotDirectory
	}
	f, err := h.dir.OpenFile(".", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return newWritableDir(int(f.Fd()), false)
}

// close closes the directory. A second close does nothing.
func (d *writableDir) close() {
	if d.fd >= 0 {
		unix.Close(d.fd)
		d.fd = -1
	}
}

// lstat returns the metadata of an entry; for a link, those of the link.
func (d *writableDir) lstat(name string) (Stat, error) {
	var raw unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &raw, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Stat{}, err
	}
	return statOf(&raw), nil
}

// stat returns the metadata of the directory itself.
func (d *writableDir) stat() (Stat, error) {
	var raw unix.Stat_t
	if err := unix.Fstat(d.fd, &raw); err != nil {
		return Stat{}, err
	}
	return statOf(&raw), nil
}

// open opens the existing entry name with the given open(2) flags, without
// blocking. The caller checks the kind of file.
func (d *writableDir) open(name string, flags int) (*os.File, Stat, error) {
	fd, err := retryInterrupted(func() (int, error) {
		return unix.Openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, Stat{}, err
	}
	var raw unix.Stat_t
	if err := unix.Fstat(fd, &raw); err != nil {
		unix.Close(fd)
		return nil, Stat{}, err
	}
	return os.NewFile(uintptr(fd), name), statOf(&raw), nil
}

// openChild opens a subdirectory that is neither a link nor on a pseudo file system.
func (d *writableDir) openChild(name string) (*writableDir, error) {
	fd, err := retryInterrupted(func() (int, error) {
		return unix.Openat(d.fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err == unix.ELOOP || err == unix.ENOTDIR {
		return nil, errChanged
	}
	if err != nil {
		return nil, err
	}
	c := &writableDir{fd: fd, anonymous: d.anonymous}
	own, err := c.stat()
	if above, err2 := d.stat(); err != nil || err2 != nil || own.Dev != above.Dev && (isPseudoFile(fd) || own.Dev == devDevice()) {
		c.close()
		return nil, errPseudo
	}
	return c, nil
}

// mkdir creates a subdirectory.
func (d *writableDir) mkdir(name string) error { return unix.Mkdirat(d.fd, name, 0o777) }

// rmdir removes an empty subdirectory.
func (d *writableDir) rmdir(name string) error { return unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR) }

// remove removes an entry that is not a directory.
func (d *writableDir) remove(name string) error {
	return unix.Unlinkat(d.fd, name, 0)
}

// rename renames an entry. It replaces an existing one.
func (d *writableDir) rename(from, to string) error { return unix.Renameat(d.fd, from, d.fd, to) }

// renameNoReplace renames an entry. It returns EEXIST if the new name exists. On a file
// system without RENAME_NOREPLACE and hard links it tests that first, and so replaces a
// file that another program creates in between.
func (d *writableDir) renameNoReplace(from, to string) error {
	err := unix.Renameat2(d.fd, from, d.fd, to, unix.RENAME_NOREPLACE)
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	// A file system without the flag may support hard links, which also replace
	// nothing.
	linked, err := renameByLink(from, to, func(from, to string) error { return unix.Linkat(d.fd, from, d.fd, to, 0) }, d.remove)
	if linked || err == unix.EEXIST {
		return err
	}
	if _, err := d.lstat(to); err == nil {
		return unix.EEXIST
	}
	return unix.Renameat(d.fd, from, d.fd, to)
}

// createExclusive creates a file and opens it for reading and writing. It returns
// fs.ErrExist if the name exists.
func (d *writableDir) createExclusive(name string, perm uint32) (*os.File, error) {
	fd, err := retryInterrupted(func() (int, error) {
		return unix.Openat(d.fd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// createAnonymous creates a file without a name. ok is false, without an error, if the
// file system does not support that.
func (d *writableDir) createAnonymous(perm uint32) (f *os.File, ok bool, err error) {
	if !d.anonymous {
		return nil, false, nil
	}
	fd, err := retryInterrupted(func() (int, error) {
		return unix.Openat(d.fd, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, perm)
	})
	switch err {
	case nil:
		return os.NewFile(uintptr(fd), "new file"), true, nil
	case unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.ENFILE:
		return nil, true, err
	}
	return nil, false, nil // not supported by this file system
}

// link gives an anonymous file a name. It fails if the name exists.
func (d *writableDir) link(f *os.File, name string) error {
	return unix.Linkat(procSelfFD(), strconv.Itoa(int(f.Fd())), d.fd, name, unix.AT_SYMLINK_FOLLOW)
}

// checkWritable returns fs.ErrPermission or EROFS if this user may not write to
// the entry name, and fs.ErrNotExist if there is none.
func (d *writableDir) checkWritable(name string) error {
	const flags = unix.AT_EACCESS | unix.AT_SYMLINK_NOFOLLOW
	err := unix.Faccessat2(d.fd, name, unix.W_OK, flags)
	if err != unix.EPERM && err != unix.ENOSYS {
		return err
	}
	if unix.Faccessat2(d.fd, name, unix.F_OK, flags) == nil {
		return err // the file is immutable; the call exists
	}
	return unix.Faccessat(d.fd, name, unix.W_OK, flags)
}

// sync makes the changes of the directory's entries durable.
func (d *writableDir) sync() error {
	fd, err := retryInterrupted(func() (int, error) { return unix.Openat(d.fd, ".", openDirFlags, 0) })
	if err == unix.EACCES {
		return nil // the directory cannot be read: the file system decides when to write
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = retryInterrupted(func() (int, error) { return 0, unix.Fsync(fd) })
	if err == unix.EINVAL || err == unix.ENOTSUP {
		return nil // the file system does not support sync
	}
	return err
}

// entryNames returns up to limit names of entries; nil if the directory cannot be read.
func (d *writableDir) entryNames(limit int) []string {
	fd, err := retryInterrupted(func() (int, error) { return unix.Openat(d.fd, ".", openDirFlags, 0) })
	if err != nil {
		return nil
	}
	return readNames(os.NewFile(uintptr(fd), "."), limit)
}

// isLocal reports whether a lock in this directory excludes all other processes. On
// network file systems, other machines may not see it.
func (d *writableDir) isLocal() bool {
	return newDir(d.fd, "").IsLocal()
}

// isSameDir reports whether h is this directory, by device and inode. It
// returns false if the directory cannot be examined.
func (d *writableDir) isSameDir(h object) bool {
	st, err := d.stat()
	other := h.stat()
	return err == nil && st.Dev == other.Dev && st.Ino == other.Ino
}

// reserveSpace reserves space for size bytes from offset on, without changing the
// content. It returns ENOSPC, EDQUOT or EFBIG, and nil if the file system cannot reserve.
func reserveSpace(f *os.File, offset, size int64) error {
	if size <= 0 {
		return nil
	}
	_, err := retryInterrupted(func() (int, error) {
		return 0, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, size)
	})
	if err == unix.ENOSPC || err == unix.EDQUOT || err == unix.EFBIG {
		return err
	}
	return nil // not supported: the write itself will report missing space
}
