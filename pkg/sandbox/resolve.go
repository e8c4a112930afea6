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

// maxLinks bounds the links followed for one path, as in the kernel.
const maxLinks = 40

var (
	// errOutside and errNotDirectory are errors of the resolver, which
	// explainReadError converts to OUTSIDE_ROOT and NOT_A_DIRECTORY.
	errOutside      = errors.New("outside the roots")
	errNotDirectory = &fs.PathError{Op: "open", Path: "entry", Err: syscall.ENOTDIR}
)

// resolved is the result of resolving a path: the open object and what its
// names say about it.
type resolved struct {
	object      // the caller closes it, unless shared
	shared bool // the object belongs to a root
	root   *openRoot
	asked  string // absolute path, as the caller gave it
	path   string // absolute path with links resolved
	secret bool   // a link on the way has the name of a secret
	masked bool   // the last link on the way has the name of a settings file
}

// close closes the object, unless it belongs to a root.
func (o *resolved) close() {
	if !o.shared {
		o.object.close()
	}
}

// missingError reports a path component that could not be opened, usually
// because it does not exist, and where it was looked up. It unwraps to err.
type missingError struct {
	err  error
	root *openRoot
	dir  []string // the directory in which it was looked up, relative to root
	name string
	rest []string
}

func (m *missingError) Error() string { return m.err.Error() }
func (m *missingError) Unwrap() error { return m.err }

// accessPurpose says for what an object is resolved. It decides whether secrets
// are refused.
type accessPurpose int

const (
	forMetadata accessPurpose = iota // for its metadata: secrets are visible, their content is not
	forContent                       // for its content: secrets are refused
)

// resolve returns the object at a tool's path argument. If no object has the literal
// name, it tries the name as pathname.Escape writes it. Its errors can be shown to the
// caller.
func (f *FS) resolve(name string, purpose accessPurpose) (*resolved, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	o, err := f.resolveWithRetry(name, purpose)
	if plain, ok := unescapePath(name); ok && errors.Is(err, fs.ErrNotExist) && checkName(plain) == nil {
		if o2, err2 := f.resolveWithRetry(plain, purpose); !errors.Is(err2, fs.ErrNotExist) {
			o, err = o2, err2
		}
	}
	return o, f.explainReadError(name, err)
}

// resolveWithRetry resolves a literal name. It tries again if files are moved
// meanwhile.
func (f *FS) resolveWithRetry(name string, purpose accessPurpose) (o *resolved, err error) {
	for range maxOpenTries {
		o, err = f.resolveOnce(name, purpose)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	return o, err
}

// unescapePath reverts pathname.Escape in each component. It returns false if no
// component has an escape, and always where a backslash separates components.
func unescapePath(name string) (unescaped string, ok bool) {
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

// resolveOnce resolves a literal name. It returns errOutside for a path outside the
// roots, errDenied for a secret, by the requested or the resolved path, and the errors
// of the walk, such as a *missingError. The caller closes the result.
func (f *FS) resolveOnce(name string, purpose accessPurpose) (*resolved, error) {
	root, rest, ok := f.findRoot(name)
	if !ok {
		return nil, errOutside
	}
	asked := joinPath(root.Path, rest)
	if f.isInRoot(asked) && f.isHidden(asked, purpose) {
		return nil, errDenied
	}
	o := f.resolveDeep(root, rest)
	if o == nil {
		w := &walker{fs: f, root: root, here: root.object, pending: rest}
		var err error
		if o, err = w.walk(); err != nil {
			w.closeObjects()
			return nil, f.hideSecret(err, purpose)
		}
	}
	o.asked = asked
	if f.isHidden(o.path, purpose) || o.secret && purpose == forContent {
		o.close()
		return nil, errDenied
	}
	return o, nil
}

// isInRoot reports whether a path, as written, is in one of the roots.
func (f *FS) isInRoot(path string) bool {
	for _, r := range f.roots {
		if contains(r.Path, path) {
			return true
		}
	}
	return false
}

// isHidden reports whether the object at path is refused for this purpose. A secret may
// be looked at, but not read. An object in a directory of secrets is refused for both
// purposes.
func (f *FS) isHidden(path string, purpose accessPurpose) bool {
	if purpose == forContent {
		return f.Denied(path)
	}
	return f.Denied(filepath.Dir(path))
}

// hideSecret replaces an error that would reveal the content of a directory of
// secrets.
func (f *FS) hideSecret(err error, purpose accessPurpose) error {
	var m *missingError
	if errors.As(err, &m) && f.isHidden(filepath.Join(joinPath(m.root.Path, m.dir), m.name), purpose) {
		return errDenied
	}
	return err
}

// resolveDeep opens an object in one step if its path contains no link and no "..".
// Otherwise, and after any error, it returns nil.
func (f *FS) resolveDeep(root *openRoot, rest []string) *resolved {
	clean := make([]string, 0, len(rest))
	for i, part := range rest {
		switch {
		case part == "..":
			return nil
		case part == "." && i == len(rest)-1 && len(clean) > 0:
			return nil // a trailing slash: the object must be a directory
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

// newResolved returns the result for an object in root. For nested roots, the
// innermost one decides what is permitted.
func (f *FS) newResolved(h object, root *openRoot, real []string) *resolved {
	path := joinPath(root.Path, real)
	return &resolved{object: h, shared: h == root.object, root: f.innermostRoot(path, root), path: path}
}

// innermostRoot returns the innermost root that contains path, which is in root.
func (f *FS) innermostRoot(path string, root *openRoot) *openRoot {
	for _, r := range f.roots {
		if len(r.Path) > len(root.Path) && contains(r.Path, path) {
			root = r
		}
	}
	return root
}

// splitPath returns the components of a path, without empty ones. A trailing
// slash, which requires a directory, becomes a final ".".
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

// joinPath returns the absolute path of components in dir, cleaned without looking at
// the file system.
func joinPath(dir string, parts []string) string {
	return filepath.Join(dir, strings.Join(parts, string(filepath.Separator)))
}
