package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// rootObject opens objects through os.Root: on macOS and Windows, and in Linux
// containers without openat2.
//
// os.Root follows links in the root, opens devices, and waits at a fifo. So each entry
// is checked with Lstat first and opened only if it is of the right kind, and the
// opened object must be the checked one. One race remains: a program that replaces a
// directory by a fifo at that moment makes the call wait. No race makes it read
// another file.
type rootObject struct {
	info   fs.FileInfo
	dir    *os.Root // the directory itself; nil for other objects
	parent *os.Root // for other objects, the directory that contains it; not closed with the object
	name   string
}

// openPortableRoot opens the directory at path, an absolute path without links, as a
// root. It returns errChanged if path now contains a link or is not a directory. The
// garbage collector closes the root, through os.Root.
func openPortableRoot(path string) (object, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(path); err != nil || real != path || !info.IsDir() {
		return nil, errChanged
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return newVerifiedDir(root, info)
}

// newVerifiedDir returns the object of root's directory, which owns root. It
// closes root and returns errChanged unless that is the directory described by
// info.
func newVerifiedDir(root *os.Root, info fs.FileInfo) (object, error) {
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(opened, info) {
		err = errChanged
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return &rootObject{info: opened, dir: root}, nil
}

// stat implements object.
func (h *rootObject) stat() Stat { return statOfInfo(h.info) }

// isSameFile implements object.
func (h *rootObject) isSameFile(info fs.FileInfo) bool { return os.SameFile(h.info, info) }

// isPseudo implements object: it reports whether the file is on a pseudo file system.
func (h *rootObject) isPseudo() bool {
	if h.dir == nil {
		return isPseudoRoot(h.parent, h.name, h.info)
	}
	return isPseudoRoot(h.dir, ".", h.info)
}

// openChild implements object. It returns errChanged if the entry was replaced
// meanwhile.
func (h *rootObject) openChild(name string) (object, error) {
	if h.dir == nil {
		return nil, errNotDirectory
	}
	info, err := h.dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return &rootObject{info: info, parent: h.dir, name: name}, nil
	}
	root, err := h.dir.OpenRoot(name)
	if err != nil {
		return nil, h.errorIfChanged(name, info, err)
	}
	return newVerifiedDir(root, info)
}

// errorIfChanged returns errChanged if the entry was replaced since it was checked,
// else err.
func (h *rootObject) errorIfChanged(name string, was fs.FileInfo, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		// os.Root refused a link that leads outside. There was no link when the object
		// was found, although the object may be back by now.
		return errChanged
	}
	now, err2 := h.dir.Lstat(name)
	if err2 != nil || !os.SameFile(now, was) || os.IsNotExist(err) {
		return errChanged
	}
	return err
}

// openDeep returns errNeedsWalk: os.Root would follow links.
func (h *rootObject) openDeep(string) (object, error) { return nil, errNeedsWalk }

// readlink implements object. It returns errChanged if the entry is no longer a link.
func (h *rootObject) readlink() (string, error) {
	target, err := h.parent.Readlink(h.name)
	if err != nil {
		return "", errChanged // the entry was a link when it was found
	}
	return target, nil
}

// openFile implements object. It returns errChanged if the entry is another file by
// now.
func (h *rootObject) openFile() (*os.File, Stat, error) {
	f, err := h.parent.OpenFile(h.name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		in := rootObject{dir: h.parent}
		return nil, Stat{}, in.errorIfChanged(h.name, h.info, err)
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(info, h.info) {
		err = errChanged
	}
	if err != nil {
		f.Close()
		return nil, Stat{}, err
	}
	return f, statOfInfo(info), nil
}

// openDir implements object.
func (h *rootObject) openDir(path string) (*Dir, error) {
	root, err := h.dir.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	return newDirRoot(root, path)
}

// readNames implements object. It returns nil if the directory cannot be read.
func (h *rootObject) readNames(limit int) []string {
	f, err := h.dir.Open(".")
	if err != nil {
		return nil
	}
	return readNames(f, limit)
}

// close implements object.
func (h *rootObject) close() {
	if h.dir != nil {
		h.dir.Close()
	}
}
