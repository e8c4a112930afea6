//go:build !linux

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// writableDir is an open directory whose entries are written. Its methods take the name of
// one entry. os.Root follows a link to a place inside the directory, so each entry is
// checked first.
type writableDir struct {
	root *os.Root
}

// writableDir implements object.
func (h *rootObject) writableDir() (*writableDir, error) {
	if h.dir == nil {
		return nil, errNotDirectory
	}
	root, err := h.dir.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	return &writableDir{root: root}, nil
}

// close closes the directory.
func (d *writableDir) close() { d.root.Close() }

// lstat returns the metadata of an entry; for a link, those of the link.
func (d *writableDir) lstat(name string) (Stat, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return Stat{}, err
	}
	return statOfInfo(info), nil
}

// stat returns the metadata of the directory itself.
func (d *writableDir) stat() (Stat, error) { return d.lstat(".") }

// open opens the existing regular file name with the given open(2) flags,
// without blocking. It returns errChanged for another kind of file.
func (d *writableDir) open(name string, flags int) (*os.File, Stat, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, Stat{}, err
	}
	if !before.Mode().IsRegular() {
		return nil, Stat{}, errChanged
	}
	f, err := d.root.OpenFile(name, flags|openNonblock, 0)
	if err != nil {
		return nil, Stat{}, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = errChanged
	}
	if err != nil {
		f.Close()
		return nil, Stat{}, err
	}
	return f, statOfInfo(after), nil
}

// openChild opens a subdirectory that is neither a link nor on a pseudo file system.
func (d *writableDir) openChild(name string) (*writableDir, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, errChanged
	}
	if isPseudoRoot(d.root, name, before) {
		return nil, errPseudo
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := root.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errChanged
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return &writableDir{root: root}, nil
}

// mkdir creates a subdirectory.
func (d *writableDir) mkdir(name string) error { return d.root.Mkdir(name, 0o777) }

// rmdir removes an empty subdirectory.
func (d *writableDir) rmdir(name string) error { return d.root.Remove(name) }

// remove removes an entry that is not a directory.
func (d *writableDir) remove(name string) error { return d.root.Remove(name) }

// rename renames an entry. It replaces an existing one.
func (d *writableDir) rename(from, to string) error { return d.root.Rename(from, to) }

// renameNoReplace renames an entry with a hard link, which replaces nothing, if the
// file system supports them. It fails if the new name exists.
func (d *writableDir) renameNoReplace(from, to string) error {
	linked, err := renameByLink(from, to, d.root.Link, d.remove)
	if linked || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := d.root.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return d.root.Rename(from, to)
}

// createExclusive creates a file. It fails if the name exists.
func (d *writableDir) createExclusive(name string, perm uint32) (*os.File, error) {
	return d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fs.FileMode(perm))
}

// createAnonymous returns false: os.Root cannot create a file without a name.
func (d *writableDir) createAnonymous(uint32) (*os.File, bool, error) { return nil, false, nil }

// link returns errors.ErrUnsupported.
func (d *writableDir) link(*os.File, string) error { return errors.ErrUnsupported }

// checkWritable returns fs.ErrPermission or EROFS if this user may not write to
// the entry name, as far as that is visible without writing.
func (d *writableDir) checkWritable(name string) error {
	info, err := d.root.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o222 == 0 && os.Geteuid() != 0 {
		return fs.ErrPermission
	}
	return nil
}

// sync makes the changes of the directory's entries durable, if the system can.
func (d *writableDir) sync() error {
	if runtime.GOOS == "windows" {
		return nil // this system does not sync directories
	}
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// entryNames returns up to limit names of entries; nil if the directory cannot be read.
func (d *writableDir) entryNames(limit int) []string {
	f, err := d.root.Open(".")
	if err != nil {
		return nil
	}
	return readNames(f, limit)
}

// isLocal returns false: this system does not tell the kind of file system.
func (d *writableDir) isLocal() bool { return false }

// isSameDir reports whether h is this directory, by device and inode. It
// returns false if the directory cannot be examined.
func (d *writableDir) isSameDir(h object) bool {
	info, err := d.root.Stat(".")
	return err == nil && h.isSameFile(info)
}

// reserveSpace does nothing: the write itself will report missing space.
func reserveSpace(*os.File, int64, int64) error { return nil }
