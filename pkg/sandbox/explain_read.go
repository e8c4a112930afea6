package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

var (
	// errDenied and errPseudo are the reasons of the resolver for refusing a
	// path. explainReadError converts them to DENIED_PATH and SPECIAL_FILE.
	errDenied = errors.New("looks like a secret")
	errPseudo = errors.New("on a pseudo file system")
)

// explainReadError converts the error of a resolution into an error for the caller
// that says what to do next; nil stays nil. The code tells the cause: OUTSIDE_ROOT,
// DENIED_PATH, NOT_FOUND, NOT_A_DIRECTORY, SPECIAL_FILE, CONFLICT (replaced meanwhile),
// INVALID_PARAMS (name too long) or PERMISSION_DENIED. Every path outside the roots gets
// the same text, whether it exists or not.
func (f *FS) explainReadError(name string, err error) error {
	shown := pathname.Escape(name)
	var m *missingError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errOutside):
		return toolerr.New(toolerr.OutsideRoot, "%s is outside the allowed directories (%s): use a path inside them, or start the server with another --root DIR", shown, f.formatFirstRoots())
	case errors.Is(err, errDenied):
		return toolerr.New(toolerr.DeniedPath, "%s looks like a secret (credentials, private key or the like) and is not read: ask the user, who can allow it with --allow-path", shown)
	case errors.Is(err, errPseudo):
		return toolerr.New(toolerr.SpecialFile, "%s is a pseudo-file of the kernel or a device: only regular files and directories can be used", shown)
	case errors.Is(err, errChanged):
		return toolerr.New(toolerr.Conflict, "%s kept being replaced while it was opened: try again", shown)
	case errors.Is(err, syscall.ELOOP):
		return toolerr.New(toolerr.NotFound, "%s cannot be resolved: more than %d symbolic links, probably a loop; use another path, or correct the links (ls shows their targets)", shown, maxLinks)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return toolerr.New(toolerr.InvalidParams, "%s cannot be used: the name is too long for this file system", shown)
	case errors.Is(err, errNotDirectory) && errors.As(err, &m):
		return toolerr.New(toolerr.NotADirectory, "%s does not exist: %s is not a directory; correct the path", shown, f.Display(joinPath(m.root.Path, append(m.dir[:len(m.dir):len(m.dir)], m.name))))
	case errors.Is(err, fs.ErrNotExist) && errors.As(err, &m):
		return f.notFound(name, m)
	case errors.Is(err, fs.ErrPermission):
		return toolerr.New(toolerr.PermissionDenied, "%s cannot be opened: this user has no permission; ask for it, or continue without it", shown)
	}
	return toolerr.New(toolerr.CodeOf(err), "%s cannot be opened: %w", shown, withoutOpAndPath(err))
}

// notFound returns the NOT_FOUND error that names the missing path and up to three similar ones.
// If the missing path is not the one that was asked for, for example because a link
// leads to it, the error says so.
func (f *FS) notFound(name string, m *missingError) error {
	shown, at := pathname.Escape(name), ""
	dir := f.Display(joinPath(m.root.Path, m.dir))
	whole := joinPath(m.root.Path, append(slices.Clip(m.dir), m.name))
	if len(m.rest) > 0 || pathname.Escape(filepath.ToSlash(filepath.Clean(name))) != f.Display(whole) && filepath.Clean(name) != whole {
		at = fmt.Sprintf(": there is no %s in %s", pathname.Escape(m.name), dir)
	}
	if f.listed > 1 {
		at += "; the roots are " + f.formatFirstRoots()
	}
	near := f.namesNear(m)
	if len(near) == 0 {
		return toolerr.New(toolerr.NotFound, "%s does not exist%s; use ls on %s to see its entries", shown, at, dir)
	}
	quoted := slices.Clone(near)
	for i, n := range quoted {
		if strings.TrimSpace(n) != n { // a space at either end would be invisible
			quoted[i] = `"` + n + `"`
		}
	}
	return toolerr.New(toolerr.NotFound, "%s does not exist%s; did you mean %s?", shown, at, strings.Join(quoted, ", "))
}

// namesNear returns up to three existing paths that the caller may have meant: first
// names that people regard as equal, then the same name in other directories, then
// similar names. Similar names in other directories are returned only if no name is
// the same. Long paths are returned only in the first position.
func (f *FS) namesNear(m *missingError) []string {
	same, beside := f.suggestNear(m)
	all := same
	others := f.findElsewhere(m)
	for _, l := range others {
		if l.distance == 0 {
			all = append(all, l.path)
		}
	}
	found := len(all) > 0
	if !found || len(m.rest) == 0 {
		all = append(all, beside...)
	}
	for _, l := range others {
		if !found {
			all = append(all, l.path)
		}
	}
	var near []string
	size := 0
	for _, path := range all {
		if size += len(path); len(near) == maxSuggestions || len(near) > 0 && size > maxSuggestedBytes {
			break
		}
		if !slices.Contains(near, path) {
			near = append(near, path)
		}
	}
	return near
}

// formatFirstRoots returns the roots as text for an error, with a mark for read-only
// ones.
func (f *FS) formatFirstRoots() string { return f.formatRoots(0, 8) }

// withoutOpAndPath removes the operation and path that the standard library adds to an
// error. They do not help the reader, and may reveal a path outside the roots.
func withoutOpAndPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
