package walk

import (
	"context"
	"io/fs"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// maxNamedEntries bounds the entries that FindNamed visits below a root.
const maxNamedEntries = 20_000

// FindNamed implements sandbox.Finder: it calls yield for entries below root,
// until yield returns false, or maxNamedEntries were visited. Entries that are
// not ignored come first, then those below ignored directories.
func FindNamed(f *sandbox.FS, root string, yield func(path, name string) bool) {
	left := maxNamedEntries
	visit := func(prefix string) func(int, *Entry) error {
		return func(_ int, e *Entry) error {
			if left--; left < 0 || !yield(prefix+e.Path, e.Name) {
				left = -1
				return fs.SkipAll
			}
			return nil
		}
	}
	report := visitBelow(f, root, Options{Hidden: true, Workers: 1}, visit(""))
	for _, dir := range report.IgnoredDirs {
		if left < 0 {
			return
		}
		visitBelow(f, root+"/"+dir, Options{Hidden: true, NoIgnore: true, Workers: 1}, visit(dir+"/"))
	}
}

// visitBelow walks the directory dir and ignores errors.
func visitBelow(f *sandbox.FS, dir string, o Options, visit func(int, *Entry) error) Report {
	node, err := Start(f.WithNearbySuggestions(), dir, o)
	if err != nil {
		return Report{}
	}
	defer node.Close()
	report, _ := Walk(context.Background(), node, visit) // unreadable directories suggest nothing
	return report
}
