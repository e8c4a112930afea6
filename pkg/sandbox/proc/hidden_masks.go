package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// addMasks adds objects, the hidden files of the roots, to the files to mask. At L2,
// files that a command can move are masked by their identity (Spec.Pinned) instead of
// their path (Spec.Mask). This includes files that Spec.Mask contained before.
func (s *spec) addMasks(objects []supervise.Pinned) {
	if s.Level != L2 {
		s.Mask = append(s.Mask, pathsOf(objects)...)
		slices.Sort(s.Mask)
		s.Mask = slices.Compact(s.Mask)
		return
	}
	// In an overlay, files have other identities, and no other command can
	// move them.
	layered := slices.DeleteFunc(slices.Clone(objects), func(p supervise.Pinned) bool { return !s.isInLayer(p.Path) })
	objects = slices.DeleteFunc(objects, func(p supervise.Pinned) bool { return s.isInLayer(p.Path) })
	names := pathsOf(layered)
	for _, path := range s.Mask {
		object, ok := s.pinnedAt(path)
		if ok && !s.isInLayer(object.Path) {
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
		inside := slices.ContainsFunc(s.Pinned, func(p supervise.Pinned) bool {
			return p.Path != object.Path && supervise.IsBeneath(p.Path, object.Path)
		}) ||
			slices.ContainsFunc(s.Mask, func(dir string) bool { return supervise.IsBeneath(dir, object.Path) }) || s.isCovered(object.Path)
		if !inside {
			s.Pinned = append(s.Pinned, object)
		}
	}
}

// isInLayer reports whether path is in a root with a copy-on-write layer.
func (s *spec) isInLayer(path string) bool {
	return slices.ContainsFunc(s.Layers, func(l supervise.Layer) bool { return supervise.IsBeneath(l.Root, path) })
}

// pinnedAt returns path and identity of the file at path. ok is false unless
// the file is in a writable root, and for a link or a path with a link on the
// way: linkTargets adds the path of the target.
func (s *spec) pinnedAt(path string) (file supervise.Pinned, ok bool) {
	if !s.isInWritableRoot(path) {
		return supervise.Pinned{}, false
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink != 0 {
		return supervise.Pinned{}, false
	}
	if resolved, err := filepath.EvalSymlinks(path); err != nil || resolved != path {
		return supervise.Pinned{}, false
	}
	id, ok := fileIDOf(info)
	return supervise.Pinned{Path: path, Dev: id.dev, Ino: id.ino}, ok
}

// isInWritableRoot reports whether path is in a root that commands may write.
func (s *spec) isInWritableRoot(path string) bool {
	return slices.ContainsFunc(s.Roots, func(root supervise.Root) bool { return !root.ReadOnly && supervise.IsBeneath(root.Path, path) })
}

// isCovered reports whether path is in a covered directory, and not in a root
// below that directory.
func (s *spec) isCovered(path string) bool {
	return slices.ContainsFunc(s.Cover, func(cover string) bool {
		return supervise.IsBeneath(cover, path) && !slices.ContainsFunc(s.Roots, func(root supervise.Root) bool {
			return supervise.IsBeneath(cover, root.Path) && supervise.IsBeneath(root.Path, path)
		})
	})
}

// comparePinned compares two files by path, for sorting.
func comparePinned(a, b supervise.Pinned) int { return strings.Compare(a.Path, b.Path) }

// pathsOf returns the paths of objects.
func pathsOf(objects []supervise.Pinned) (all []string) {
	for _, object := range objects {
		all = append(all, object.Path)
	}
	return all
}
