package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// maxLinks bounds the links followed for one path, as the kernel does.
const maxLinks = 40

var (
	errOutside      = errors.New("outside the roots")
	errNotDirectory = &fs.PathError{Op: "open", Path: "entry", Err: syscall.ENOTDIR}
)

// resolved is the object a name leads to.
type resolved struct {
	object      // to be closed, unless shared
	shared bool // the object is a root's own
	root   *openRoot
	asked  string // absolute, as the caller named it
	path   string // absolute, links resolved
	secret bool   // a link on the way is named as a secret
	masked bool   // the last link on the way is named as a file of settings
}

func (o *resolved) close() {
	if !o.shared {
		o.object.close()
	}
}

// missing is a component that does not exist, for the error to explain.
type missing struct {
	err  error
	root *openRoot
	dir  []string // where it was looked for, beneath root
	name string
	rest []string
}

func (m *missing) Error() string { return m.err.Error() }
func (m *missing) Unwrap() error { return m.err }

// accessPurpose tells why an object is resolved.
type accessPurpose int

const (
	toLook accessPurpose = iota // its metadata: a secret may be seen, not what is in it
	toRead                      // its content: secrets are refused
)

// resolve finds the object that a tool's argument names. A name in the form
// that pathname.Escape gives is accepted where the literal one does not exist.
// Errors are ready to be shown.
func (f *FS) resolve(name string, why accessPurpose) (*resolved, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	o, err := f.resolveWithRetry(name, why)
	if plain, ok := unescapePath(name); ok && errors.Is(err, fs.ErrNotExist) && checkName(plain) == nil {
		if o2, err2 := f.resolveWithRetry(plain, why); !errors.Is(err2, fs.ErrNotExist) {
			o, err = o2, err2
		}
	}
	return o, f.explainReadError(name, err)
}

// resolveWithRetry resolves a literal name, again if things moved meanwhile.
func (f *FS) resolveWithRetry(name string, why accessPurpose) (o *resolved, err error) {
	for range maxOpenTries {
		o, err = f.resolveOnce(name, why)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	return o, err
}

// unescapePath undoes pathname.Escape in each component that holds an escape.
func unescapePath(name string) (string, bool) {
	if filepath.Separator == '\\' || !strings.Contains(name, `\`) {
		return "", false
	}
	parts := strings.Split(name, "/")
	any := false
	for i, part := range parts {
		if plain, ok := pathname.Unescape(part); ok {
			parts[i], any = plain, true
		}
	}
	return strings.Join(parts, "/"), any
}

// resolveOnce resolves a literal name. Secrets are told by the name asked
// for, and again by where it leads.
func (f *FS) resolveOnce(name string, why accessPurpose) (*resolved, error) {
	root, rest, ok := f.findRoot(name)
	if !ok {
		return nil, errOutside
	}
	asked := joinPath(root.Path, rest)
	if f.isInRoot(asked) && f.isHidden(asked, why) {
		return nil, errDenied
	}
	o := f.resolveDeep(root, rest)
	if o == nil {
		w := &walker{fs: f, root: root, here: root.object, pending: rest}
		var err error
		if o, err = w.walk(); err != nil {
			w.closeObjects()
			return nil, f.hideSecret(err, why)
		}
	}
	o.asked = asked
	if f.isHidden(o.path, why) || o.secret && why == toRead {
		o.close()
		return nil, errDenied
	}
	return o, nil
}

// isInRoot reports whether a path is, by its name, in one of the roots.
func (f *FS) isInRoot(path string) bool {
	for _, r := range f.roots {
		if contains(r.Path, path) {
			return true
		}
	}
	return false
}

// isHidden reports whether the object at path is refused for this purpose.
func (f *FS) isHidden(path string, why accessPurpose) bool {
	if why == toRead {
		return f.Denied(path)
	}
	return f.Denied(filepath.Dir(path))
}

// hideSecret keeps an error from telling what a place of secrets holds.
func (f *FS) hideSecret(err error, why accessPurpose) error {
	var m *missing
	if errors.As(err, &m) && f.isHidden(filepath.Join(joinPath(m.root.Path, m.dir), m.name), why) {
		return errDenied
	}
	return err
}

// resolveDeep finds an object in one step if its path has no link and no "..". It
// returns nil otherwise, and whenever an error has to be explained.
func (f *FS) resolveDeep(root *openRoot, rest []string) *resolved {
	clean := make([]string, 0, len(rest))
	for i, part := range rest {
		switch {
		case part == "..":
			return nil
		case part == "." && i == len(rest)-1 && len(clean) > 0:
			return nil // a trailing slash: must be a directory
		case part != ".":
			clean = append(clean, part)
		}
	}
	if len(clean) == 0 {
		return nil
	}
	h, err := root.object.openDeep(strings.Join(clean, "/"))
	if err != nil {
		return nil
	}
	if h.stat().Dev != root.dev && h.isPseudo() {
		h.close()
		return nil
	}
	return f.newResolved(h, root, clean)
}

// newResolved makes the result for an object beneath root. Of nested roots the
// innermost decides what may be done with it.
func (f *FS) newResolved(h object, root *openRoot, real []string) *resolved {
	path := joinPath(root.Path, real)
	return &resolved{object: h, shared: h == root.object, root: f.innermostRoot(path, root), path: path}
}

func (f *FS) innermostRoot(path string, root *openRoot) *openRoot {
	for _, r := range f.roots {
		if len(r.Path) > len(root.Path) && contains(r.Path, path) {
			root = r
		}
	}
	return root
}

// splitPath returns the components of a path. A trailing slash, which asks
// for a directory, is kept as a last ".".
func splitPath(path string) []string {
	parts := make([]string, 0, strings.Count(path, "/")+2)
	start := 0
	for i := 0; i <= len(path); i++ {
		if i < len(path) && !os.IsPathSeparator(path[i]) {
			continue
		}
		if i > start {
			parts = append(parts, path[start:i])
		}
		start = i + 1
	}
	if len(path) > 0 && os.IsPathSeparator(path[len(path)-1]) {
		parts = append(parts, ".")
	}
	return parts
}

// joinPath is the absolute path of components beneath dir, cleaned by name.
func joinPath(dir string, parts []string) string {
	return filepath.Join(dir, strings.Join(parts, string(filepath.Separator)))
}
