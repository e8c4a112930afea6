package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// How much is looked through for links of credential stores into the roots.
const (
	linkDepth = 3
	linkDirs  = 64
	// linksEvery is the time between two searches for links.
	linksEvery = time.Second
)

// homeDirs are directories of a home that have credential stores as entries.
var homeDirs = [...]string{".", ".config", ".docker", ".local/share", ".local/share/fish"}

// linked returns what in the roots is a secret because a link from a credential store
// leads to it: ~/.aws -> project/dotfiles/aws. The stores are those in the homes of
// this user and directly in a root. Paths are absolute and without links.
func (s *Sandbox) linked(f *FS) (targets []string) {
	stores := Homes(s.config.Getenv)
	stores = append(stores, f.Paths()...)
	var queue []string
	for _, store := range stores {
		for _, dir := range homeDirs {
			dir = filepath.Join(store, dir)
			entries, _ := os.ReadDir(dir)
			for _, entry := range entries {
				if path := filepath.Join(dir, entry.Name()); secretPath(path) && !f.allowed(path) {
					queue = append(queue, path)
				}
			}
		}
	}
	seen := map[string]bool{}
	dirs := 0
	for depth := 0; depth <= linkDepth && len(queue) > 0; depth++ {
		var next []string
		for _, path := range queue {
			real, err := filepath.EvalSymlinks(path)
			if err != nil || seen[real] {
				continue
			}
			seen[real] = true
			if real != path {
				if slices.ContainsFunc(stores, func(dir string) bool { return contains(real, dir) }) {
					continue // all of a root or a home is no secret
				}
				if f.inside(real) && !secretPath(real) && !f.allowed(real) {
					targets = append(targets, real)
				}
			}
			if info, err := os.Lstat(real); err != nil || !info.IsDir() || dirs >= linkDirs {
				continue
			}
			dirs++
			entries, _ := os.ReadDir(real)
			for _, entry := range entries {
				if entry.IsDir() || entry.Type()&os.ModeSymlink != 0 {
					next = append(next, filepath.Join(real, entry.Name()))
				}
			}
		}
		queue = next
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// relinked reports whether a link of a credential store leads elsewhere than before.
func (s *Sandbox) relinked(f *FS) bool {
	if time.Since(s.linksRead) < linksEvery {
		return false
	}
	s.linksRead = time.Now()
	return !slices.Equal(s.linked(f), f.linked)
}

// isLinked reports whether a link of a credential store leads to path, or to a
// directory that it is in.
func isLinked(linked []string, path string) bool {
	for _, target := range linked {
		if contains(target, path) {
			return true
		}
	}
	return false
}

// linkedName reports whether isLinked may be true for an entry of this name in d, that
// is not true for d.
func (d *Dir) linkedName(name string) bool {
	for _, target := range d.linked {
		if strings.HasSuffix(target, name) && baseName(target) == name {
			return true
		}
	}
	return false
}

// refuse is the error for an entry that a link of a credential store leads to.
func (d *Dir) refuse(name string) error {
	if len(d.linked) == 0 || !isLinked(d.linked, d.join(name)) {
		return nil
	}
	return toolerr.New(toolerr.DeniedPath, "%s is not read: a link of a credential store leads to it", EscapeName(d.join(name)))
}
