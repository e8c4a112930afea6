package writeguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// scanEntries bounds the directory entries of a root that are searched for
// repositories and project settings.
const scanEntries = 1_000_000

// kind says which changes of a watched file are allowed.
type kind uint8

const (
	settingsKind   kind = iota + 1 // git's settings: a setting that runs a program must not be added
	pointerKind                    // .git or commondir: must name a watched repository; gitdir: must name a .git
	hookKind                       // of a repository
	attributesKind                 // of a repository
	projectKind                    // settings of agents, editors and other programs; files in core.hooksPath's directory
	stepsKind                      // of an unfinished rebase: a step that runs a command must not be added
	linkKind                       // a link in a repository, through which git would write elsewhere
	optionsKind                    // of an unfinished rebase or cherry-pick: the merge strategy must not be a path
)

// spot is a watched file: other programs run programs because of its content.
type spot struct {
	kind kind
	// repo is the directory of its repository, or the top directory of the
	// project for project settings.
	repo string
}

// role says how a directory is watched, as its parent directory requires.
type role struct {
	kind kind // hookKind: hooks; attributesKind: info; stepsKind: rebase-merge, sequencer; projectKind: every file in it is watched
	repo string
}

// inventory finds the files in a root that make other programs run something.
// It reads a directory again only after its time of change differs.
type inventory struct {
	root    string
	top     *view
	special map[string]*view                                  // directories watched in another way than their parents require
	left    int                                               // remaining entries to examine
	recent  func(dir string) (changed int64, closed, ok bool) // see Command.Begin; nil: nothing was read
	checked map[string]item                                   // indexes found harmless, in the state of that check
	indexes []string                                          // that take found last
	lifted  []*lifted                                         // directories made readable, until shut
}

// survey is the result of an inventory.
type survey struct {
	spots   map[string]spot
	indexes []string        // of repositories, by names in the root
	links   []string        // by names in the root
	deep    []string        // directories whose files have too long paths to be examined, by names in the root
	repos   map[string]bool // directories that git treats as a repository
	tops    map[string]bool // directories that have a .git, and the root
	dirs    []uint64        // keys of the directories outside repositories
	whole   bool            // the bounds were not reached
}

// take searches the root. It follows no link, except from a .git to its
// repository. Directories that this process cannot read are made readable
// until shut. hookDirs, names in the root, are watched with everything below,
// and so are the files and directories of guard, which are absolute paths.
// included are names of files with git's settings, programs those of files that
// git runs.
func (v *inventory) take(hookDirs, included, programs, guard []string) *survey {
	s := &survey{spots: map[string]spot{}, repos: map[string]bool{}, tops: map[string]bool{".": true}}
	known := v.special
	v.special, v.left = map[string]*view{}, scanEntries
	for _, dir := range hookDirs { // first, so that the walk does not treat them as other directories
		v.enter(s, known, dir, role{projectKind, dir})
	}
	for _, path := range guard {
		v.add(s, known, path)
	}
	for _, name := range included {
		if info, err := os.Lstat(filepath.Join(v.root, name)); err == nil && !info.IsDir() {
			s.spots[name] = spot{settingsKind, filepath.Dir(name)}
		}
	}
	for _, name := range programs {
		if info, err := os.Lstat(filepath.Join(v.root, name)); err == nil && !info.IsDir() {
			s.spots[name] = spot{projectKind, filepath.Dir(name)}
		}
	}
	if v.top == nil {
		v.top = &view{dir: ".", path: v.root, key: keyOf(".")}
	}
	v.walk(s, v.top)
	for seen := -1; seen != len(s.spots) && v.left >= 0; { // repositories in git's own directories
		seen = len(s.spots)
		for name, at := range s.spots {
			if at.kind != pointerKind {
				continue
			}
			if dir, ok := v.leadsTo(name); ok && dir != "." && !s.repos[dir] && v.special[dir] == nil {
				v.enter(s, known, dir, role{settingsKind, ""})
			}
		}
	}
	s.whole = v.left >= 0
	v.indexes = s.indexes
	return s
}

// trustIndexes takes the indexes as they are for the user's.
func (v *inventory) trustIndexes() {
	for _, name := range v.indexes {
		if info, err := os.Lstat(filepath.Join(v.root, name)); err == nil {
			v.checked[name] = stampOf(info, spot{})
		}
	}
}

// enter searches a directory that is watched in its own role.
func (v *inventory) enter(s *survey, known map[string]*view, dir string, as role) {
	one := known[dir]
	if one == nil || one.role != as {
		one = &view{dir: dir, path: filepath.Join(v.root, dir), role: as}
	}
	if v.special[dir] == nil {
		v.walk(s, one)
		v.special[dir] = one
	}
}

// add adds a protected file, or a directory with everything below. Files of
// repositories are skipped: they are found with their repository.
func (v *inventory) add(s *survey, known map[string]*view, path string) {
	name, err := filepath.Rel(v.root, path)
	if err != nil || !filepath.IsLocal(name) || name == "." || slices.Contains([]string{".git", "hooks", "attributes", "commondir", "gitdir"}, filepath.Base(name)) {
		return
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
	case info.IsDir():
		v.enter(s, known, name, role{projectKind, filepath.Dir(name)})
	default:
		s.spots[name] = spot{projectKind, filepath.Dir(name)}
	}
}

// longestPath bounds the path of a directory in bytes, so that each of its
// entries has a path that the kernel takes (PATH_MAX, NAME_MAX).
const longestPath = 4095 - 1 - 255

// walk searches a directory and everything below.
func (v *inventory) walk(s *survey, at *view) {
	if len(at.path) > longestPath {
		s.deep, s.dirs = append(s.deep, at.dir), append(s.dirs, at.key)
		return
	}
	changed, closed, ok := v.changed(at.path)
	if closed && unreadable(at.path) {
		if l, err := lift(v.root, at.dir, 0o500); err == nil {
			v.lifted = append(v.lifted, l)
		}
	}
	if !ok {
		at.below, at.spots, at.indexes, at.links, at.changed, at.read = nil, nil, nil, nil, 0, time.Time{}
		return
	}
	if changed != at.changed || at.read.Sub(time.Unix(0, changed)) < supervise.SettledAfter {
		at.sortOut(v.left)
		at.changed = changed
	}
	if v.left -= at.entries; v.left < 0 {
		return
	}
	if at.repo {
		s.repos[at.dir] = true
	}
	if at.top {
		s.tops[at.dir] = true
	}
	if at.role.kind == 0 && !at.repo {
		s.dirs = append(s.dirs, at.key)
	}
	for name, found := range at.spots {
		s.spots[name] = found
	}
	s.indexes = append(s.indexes, at.indexes...)
	s.links = append(s.links, at.links...)
	for _, below := range at.below {
		if len(v.special) == 0 || v.special[below.dir] == nil {
			v.walk(s, below)
		}
	}
}

// changed returns a directory's time of change in nanoseconds since 1970,
// whether its permissions keep this process out, and whether it exists. It
// reuses the result of the search for secrets, which runs just before a
// command starts.
func (v *inventory) changed(path string) (changed int64, closed, ok bool) {
	if v.recent != nil {
		if changed, closed, ok := v.recent(path); ok {
			return changed, closed, true
		}
	}
	return directoryChanged(path)
}

// unreadable reports whether this process cannot list or enter a directory.
func unreadable(path string) bool {
	d, err := os.Open(path)
	if err == nil {
		d.Close()
		_, err = os.Lstat(path + "/.")
	}
	return errors.Is(err, fs.ErrPermission)
}

// shut restores the permissions of the directories that take made readable.
func (v *inventory) shut() {
	for _, l := range slices.Backward(v.lifted) {
		l.drop()
	}
	v.lifted = nil
}
