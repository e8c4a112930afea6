package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// ShownRoots returns the configured roots as shown to users; relative paths start from
// the first one. It returns nil if the roots come from the client or are the working
// directory, and if a root cannot be resolved.
func (c *Config) ShownRoots() []string {
	specs, err := New(*c).configuredRoots()
	if err != nil {
		return nil
	}
	var names []string
	for _, spec := range specs {
		names = append(names, shownRoot(spec.dir, spec.readOnly || c.ReadOnly))
	}
	return names
}

// shownRoot returns a root as shown to users, with a mark if it is read-only.
func shownRoot(dir string, readOnly bool) string {
	if readOnly {
		return pathname.Escape(dir) + " (read-only)"
	}
	return pathname.Escape(dir)
}

// RootNote returns a note for the result of a call without a path: which root was used
// and which others exist. It is "" if there is only one root.
func (f *FS) RootNote() string {
	if f.listed < 2 {
		return ""
	}
	return fmt.Sprintf("root %s (other roots: %s)", pathname.Escape(f.roots[0].Path), f.formatRoots(1, 4))
}

// formatRoots lists up to limit roots, starting with the one at index from, and gives the
// number of the others.
func (f *FS) formatRoots(from, limit int) string {
	var names []string
	for i := from; i < f.listed; i++ {
		if len(names) == limit && i < f.listed-1 {
			names = append(names, fmt.Sprintf("and %d more", f.listed-i))
			break
		}
		names = append(names, shownRoot(f.roots[i].Path, f.roots[i].ReadOnly))
	}
	return strings.Join(names, ", ")
}

// Display returns a path as results show it: relative to the first root ("." for that
// root itself), absolute in other roots, with slashes and escaped. Tools accept the
// result as an argument.
func (f *FS) Display(abs string) string {
	if len(f.roots) > 0 {
		if rel, ok := relativeTo(f.roots[0].Path, abs); ok {
			abs = rel
		}
	}
	return pathname.Escape(filepath.ToSlash(abs))
}
