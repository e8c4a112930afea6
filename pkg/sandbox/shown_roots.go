package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// ShownRoots returns the configured roots as they are shown, the one that relative
// paths start from first. It returns nil where the client or the working
// directory decides, and where a root cannot be named.
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

func shownRoot(dir string, readOnly bool) string {
	if readOnly {
		return pathname.Escape(dir) + " (read-only)"
	}
	return pathname.Escape(dir)
}

// RootNote says, for the header of a call without a path, which root it took
// and which others there are; "" if there is one root.
func (f *FS) RootNote() string {
	if f.listed < 2 {
		return ""
	}
	return fmt.Sprintf("root %s (other roots: %s)", pathname.Escape(f.roots[0].Path), f.rootList(1, 4))
}

// rootList names the roots from one on, as far as most, and counts the rest.
func (f *FS) rootList(from, most int) string {
	var names []string
	for i := from; i < f.listed; i++ {
		if len(names) == most && i < f.listed-1 {
			names = append(names, fmt.Sprintf("and %d more", f.listed-i))
			break
		}
		names = append(names, shownRoot(f.roots[i].Path, f.roots[i].ReadOnly))
	}
	return strings.Join(names, ", ")
}

// Display shows a path in results: relative to the first root ("." for the
// root itself), absolute elsewhere, with slashes and escaped. It can be given
// back as an argument.
func (f *FS) Display(abs string) string {
	if len(f.roots) > 0 {
		if rel, ok := relativeTo(f.roots[0].Path, abs); ok {
			abs = rel
		}
	}
	return pathname.Escape(filepath.ToSlash(abs))
}
