package sandbox

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// walker follows one name, component by component, from root to root.
type walker struct {
	fs      *FS
	root    *openRoot
	real    []string // components of where we are, beneath root
	here    object   // the directory we are in
	pending []string // components still to go; may hold "." and ".."
	links   int
	secret  bool // a link that was followed is named as a secret
	masked  bool // one that leads to the object is named as a file of settings
}

// walk follows the pending components. On an error the caller leaves.
func (w *walker) walk() (*resolved, error) {
	for len(w.pending) > 0 {
		name := w.pending[0]
		w.pending = w.pending[1:]
		switch name {
		case ".":
			continue
		case "..":
			if err := w.goUp(); err != nil {
				return nil, err
			}
			continue
		}
		next, err := w.here.openChild(name)
		if err != nil {
			return nil, w.newMissing(name, err)
		}
		mode := next.stat().Mode
		if mode&fs.ModeSymlink != 0 {
			err := w.followLink(name, next)
			if err != nil {
				return nil, err
			}
			continue
		}
		if next.stat().Dev != w.here.stat().Dev && next.stat().Dev != w.root.dev && next.isPseudo() {
			next.close()
			return nil, errPseudo
		}
		if mode.IsDir() {
			w.closeObjects()
			w.here = next
			w.real = append(w.real, name)
			continue
		}
		if len(w.pending) > 0 {
			next.close()
			return nil, w.newMissing(name, errNotDirectory)
		}
		return w.resolveLast(next, name), nil
	}
	return w.markByLinkNames(w.fs.newResolved(w.here, w.root, w.real)), nil
}

// markByLinkNames notes what the names of the links on the way say of the object.
func (w *walker) markByLinkNames(o *resolved) *resolved {
	o.secret, o.masked = w.secret, w.masked
	return o
}

// resolveLast returns the result for an object that is not a directory. Its directory
// stays open as long, because the portable object opens the file in it.
func (w *walker) resolveLast(h object, name string) *resolved {
	o := w.fs.newResolved(h, w.root, append(w.real, name))
	if w.here != w.root.object {
		o.object = &leafObject{object: h, dir: w.here}
	}
	return w.markByLinkNames(o)
}

// leafObject closes a file's directory with it.
type leafObject struct {
	object
	dir object
}

func (l *leafObject) close() {
	l.object.close()
	l.dir.close()
}

// closeObjects closes the directory we are in, unless it is a root.
func (w *walker) closeObjects() {
	if w.here != w.root.object {
		w.here.close()
	}
	w.here = w.root.object
}

// newMissing describes a failed step.
func (w *walker) newMissing(name string, err error) error {
	return &missing{err: err, root: w.root, dir: w.real, name: name, rest: w.pending}
}

// followLink goes where a link points: beneath the directory it is in, or, when
// its target is absolute, wherever a root is.
func (w *walker) followLink(name string, link object) error {
	target, err := link.readlink()
	link.close()
	if err != nil {
		return w.newMissing(name, err)
	}
	if path := joinPath(w.root.Path, append(w.real[:len(w.real):len(w.real)], name)); w.fs.Denied(path) {
		w.secret = true
	} else if len(w.pending) == 0 && w.fs.Masked(path) {
		w.masked = true
	}
	if w.links++; w.links > maxLinks {
		return w.newMissing(name, syscall.ELOOP)
	}
	if len(target) == 0 {
		return w.newMissing(name, fs.ErrNotExist)
	}
	if isAbsolute(target) {
		return w.startAt(target)
	}
	w.pending = append(splitPath(target), w.pending...)
	return nil
}

// goUp goes to the parent directory by its name beneath the root: the
// directory we are in may have been moved since. Above the root lies nothing
// but, perhaps, another root.
func (w *walker) goUp() error {
	if len(w.real) == 0 {
		if isFileSystemTop(w.root.Path) {
			return nil
		}
		return w.startAt(filepath.Dir(w.root.Path))
	}
	real := w.real[:len(w.real)-1]
	for len(real) > 0 && len(w.pending) > 0 && w.pending[0] == ".." {
		real, w.pending = real[:len(real)-1], w.pending[1:]
	}
	w.closeObjects()
	w.real = nil
	if len(real) == 0 {
		return nil
	}
	if h, err := w.root.object.openDeep(strings.Join(real, "/")); err == nil {
		w.here, w.real = h, real
		return nil
	}
	w.pending = append(slices.Clip(real), w.pending...)
	return nil
}

// startAt starts again from the root that holds the absolute path target
// followed by the pending components.
func (w *walker) startAt(target string) error {
	root, rest, ok := w.fs.findRootOfParts(filepath.VolumeName(target), append(splitPath(target[len(filepath.VolumeName(target)):]), w.pending...))
	if !ok {
		return errOutside
	}
	w.closeObjects()
	w.root, w.here, w.pending = root, root.object, rest
	w.real = nil
	return nil
}
