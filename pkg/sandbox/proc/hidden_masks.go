package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// pin adds the hidden files of the roots to the files to mask. At L2, files
// that a command can move are masked by their identity instead of their path.
func (s *spec) pin(objects []supervise.Pinned) {
	if s.Level != L2 {
		s.Mask = append(s.Mask, paths(objects)...)
		slices.Sort(s.Mask)
		s.Mask = slices.Compact(s.Mask)
		return
	}
	// In an overlay, files have other identities, and no other command can
	// move them.
	layered := slices.DeleteFunc(slices.Clone(objects), func(p supervise.Pinned) bool { return !s.layered(p.Path) })
	objects = slices.DeleteFunc(objects, func(p supervise.Pinned) bool { return s.layered(p.Path) })
	names := paths(layered)
	for _, path := range s.Mask {
		object, ok := s.movable(path)
		if ok && !s.layered(object.Path) {
			objects = append(objects, object)
		} else {
			names = append(names, path)
		}
	}
	slices.Sort(names)
	s.Mask = slices.Compact(names)
	slices.SortFunc(objects, comparePinned)
	for _, object := range slices.Compact(objects) {
		// A masked or covered directory hides its content already.
		inside := slices.ContainsFunc(s.Pinned, func(p supervise.Pinned) bool { return p.Path != object.Path && supervise.Beneath(p.Path, object.Path) }) ||
			slices.ContainsFunc(s.Mask, func(dir string) bool { return supervise.Beneath(dir, object.Path) }) || s.underCover(object.Path)
		if !inside {
			s.Pinned = append(s.Pinned, object)
		}
	}
}

// layered reports whether a root with an overlay holds path.
func (s *spec) layered(path string) bool {
	return slices.ContainsFunc(s.Layers, func(l supervise.Layer) bool { return supervise.Beneath(l.Root, path) })
}

// movable returns the identity of the file at path, if it is in a writable
// root. ok is false for a link, and for a path with a link on the way: leads
// adds the path of the target.
func (s *spec) movable(path string) (supervise.Pinned, bool) {
	if !slices.ContainsFunc(s.Roots, func(root supervise.Root) bool { return !root.ReadOnly && supervise.Beneath(root.Path, path) }) {
		return supervise.Pinned{}, false
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink != 0 {
		return supervise.Pinned{}, false
	}
	if real, err := filepath.EvalSymlinks(path); err != nil || real != path {
		return supervise.Pinned{}, false
	}
	id, ok := idOf(info)
	return supervise.Pinned{Path: path, Dev: id.dev, Ino: id.ino}, ok
}

// underCover reports whether path is in a covered directory, and not in a root
// below that directory.
func (s *spec) underCover(path string) bool {
	return slices.ContainsFunc(s.Cover, func(cover string) bool {
		return supervise.Beneath(cover, path) && !slices.ContainsFunc(s.Roots, func(root supervise.Root) bool {
			return supervise.Beneath(cover, root.Path) && supervise.Beneath(root.Path, path)
		})
	})
}

func comparePinned(a, b supervise.Pinned) int { return strings.Compare(a.Path, b.Path) }

func paths(objects []supervise.Pinned) (all []string) {
	for _, object := range objects {
		all = append(all, object.Path)
	}
	return all
}
