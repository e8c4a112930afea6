package sandbox

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// walker resolves one path component by component, also from one root to another.
type walker struct {
	fs      *FS
	root    *openRoot
	real    []string // components of the current directory, in root
	here    object   // the current directory
	pending []string // remaining components; may contain "." and ".."
	links   int
	secret  bool // a followed link has the name of a secret
	masked  bool // a link to the object has the name of a settings file
}

// walk resolves the pending components. After an error the caller calls closeObjects.
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

// markByLinkNames sets secret and masked of the result from the names of the followed
// links.
func (w *walker) markByLinkNames(o *resolved) *resolved {
	o.secret, o.masked = w.secret, w.masked
	return o
}

// resolveLast returns the result for an object that is not a directory. The directory
// stays open with it, because rootObject opens the file in that directory.
func (w *walker) resolveLast(h object, name string) *resolved {
	o := w.fs.newResolved(h, w.root, append(w.real, name))
	if w.here != w.root.object {
		o.object = &leafObject{object: h, dir: w.here}
	}
	return w.markByLinkNames(o)
}

// leafObject closes the directory of a file together with the file.
type leafObject struct {
	object
	dir object
}

// close closes the file and its directory.
func (l *leafObject) close() {
	l.object.close()
	l.dir.close()
}

// closeObjects closes the current directory, unless it belongs to a root.
func (w *walker) closeObjects() {
	if w.here != w.root.object {
		w.here.close()
	}
	w.here = w.root.object
}

// newMissing returns the error for the component name, whose opening in the
// current directory failed with err.
func (w *walker) newMissing(name string, err error) error {
	return &missingError{err: err, root: w.root, dir: w.real, name: name, rest: w.pending}
}

// followLink continues at the target of a link: relative to its directory, or in
// whatever root contains an absolute target.
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
		return w.restartAt(target)
	}
	w.pending = append(splitPath(target), w.pending...)
	return nil
}

// goUp continues in the parent directory, which it opens by its path in the root,
// since the current directory may have been moved. Above a root there is nothing
// except possibly another root.
func (w *walker) goUp() error {
	if len(w.real) == 0 {
		if isVolumeTop(w.root.Path) {
			return nil
		}
		return w.restartAt(filepath.Dir(w.root.Path))
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

// restartAt starts again in the root that contains the absolute path target, followed by
// the pending components.
func (w *walker) restartAt(target string) error {
	root, rest, ok := w.fs.findRootOfParts(filepath.VolumeName(target), append(splitPath(target[len(filepath.VolumeName(target)):]), w.pending...))
	if !ok {
		return errOutside
	}
	w.closeObjects()
	w.root, w.here, w.pending = root, root.object, rest
	w.real = nil
	return nil
}
