package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// mostStarts bounds the attempts to start one command.
const mostStarts = 10

// mostPassed bounds the descriptors of moved files that are passed to the
// supervisor.
const mostPassed = 16

// moving records the hidden files that moved while a command was being
// started.
type moving struct {
	starts int
	files  map[fileID]bool
}

// moved records that path no longer led to its file when the supervisor was to
// mask it. It returns a CONFLICT error after mostStarts attempts.
func (m *moving) moved(s *spec, path string) error {
	if m.starts++; m.starts > mostStarts {
		return errMoving(path)
	}
	for _, p := range s.Pinned {
		if p.Path == path {
			if m.files == nil {
				m.files = map[fileID]bool{}
			}
			m.files[fileID{p.Dev, p.Ino}] = true
		}
	}
	return nil
}

// follow duplicates the descriptor of a hidden file that has moved before, so
// that the supervisor can find it under any name.
func (s *spec) follow(id fileID, k *known, m *moving) {
	if !m.files[id] || k.file == nil || s.followed[id] != nil || len(s.followed) >= mostPassed {
		return
	}
	if f := duplicate(k.file); f != nil {
		if s.followed == nil {
			s.followed = map[fileID]*os.File{}
		}
		s.followed[id] = f
	}
}

// withFollowed appends the duplicated descriptors to the supervisor's files.
func (s *spec) withFollowed(files []*os.File) []*os.File {
	for i := range s.Pinned {
		p := &s.Pinned[i]
		if f := s.followed[fileID{p.Dev, p.Ino}]; f != nil && len(files) < supervise.MaxFiles {
			files = append(files, f)
			s.Held++
			p.Held = s.Held
		}
	}
	return files
}

// close frees the files that are only needed to start the command.
func (s *spec) close() {
	s.link.close()
	closeAll(s.prologue)
	closeAll(s.undo...)
	for _, f := range s.followed {
		f.Close()
	}
}

func errMoving(path string) error {
	return toolerr.New(toolerr.Conflict, "the command was not started: another program keeps moving what commands must not read, in %s: try again",
		pathname.Escape(filepath.Dir(path)))
}

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
