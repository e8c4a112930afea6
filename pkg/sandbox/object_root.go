package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// rootObject finds objects through os.Root. Where macOS and Windows live,
// and Linux containers without openat2.
//
// os.Root follows links beneath the root, opens devices, and waits on a
// fifo. So each entry is looked at first (Lstat) and only opened if it is of
// the right kind, and what was opened must be the very object looked at.
// What remains is that somebody who swaps a directory for a fifo in that
// instant makes us wait; nobody can make us read elsewhere.
type rootObject struct {
	info   fs.FileInfo
	dir    *os.Root // the directory itself, nil for anything else
	parent *os.Root // for anything else, what it is in; not closed with it
	name   string
}

// openPortableRoot opens a root; the descriptor is freed by os.Root when
// nothing refers to it any more.
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

// newVerifiedDir makes an object of root if it is the directory in info.
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

func (h *rootObject) stat() Stat { return statOfInfo(h.info) }

func (h *rootObject) isSameFile(info fs.FileInfo) bool { return os.SameFile(h.info, info) }

func (h *rootObject) isPseudo() bool {
	if h.dir == nil {
		return isPseudoRoot(h.parent, h.name, h.info)
	}
	return isPseudoRoot(h.dir, ".", h.info)
}

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

// errorIfChanged tells an error that comes of an entry's being replaced, since it
// was looked at, from a lasting one.
func (h *rootObject) errorIfChanged(name string, was fs.FileInfo, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		// os.Root's own refusal of a link that leads outside: there was none
		// when the object was found, though it may be back by now.
		return errChanged
	}
	now, err2 := h.dir.Lstat(name)
	if err2 != nil || !os.SameFile(now, was) || os.IsNotExist(err) {
		return errChanged
	}
	return err
}

func (h *rootObject) openDeep(string) (object, error) { return nil, errSlow }

func (h *rootObject) readlink() (string, error) {
	target, err := h.parent.Readlink(h.name)
	if err != nil {
		return "", errChanged // it was a link when it was found
	}
	return target, nil
}

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

func (h *rootObject) openDir(path string) (*Dir, error) {
	root, err := h.dir.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	return newDirRoot(root, path)
}

func (h *rootObject) readNames(limit int) []string {
	f, err := h.dir.Open(".")
	if err != nil {
		return nil
	}
	return readNames(f, limit)
}

func (h *rootObject) close() {
	if h.dir != nil {
		h.dir.Close()
	}
}
