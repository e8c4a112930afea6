package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// scanEntries bounds how many directory entries of a root are looked at for
// repositories and project settings.
const scanEntries = 1_000_000

// kind is how a watched file may change.
type kind uint8

const (
	settingsKind   kind = iota + 1 // git's settings: those that run a program must not be added
	pointerKind                    // .git or commondir: leads to a repository that is watched, too
	hookKind                       // of a repository
	attributesKind                 // of a repository
	projectKind                    // agents', editors' and others' settings, core.hooksPath's directory
)

// spot is a file that other programs run something by.
type spot struct {
	kind kind
	// repo is the directory of its repository, or the directory that a project's
	// settings are at the top of.
	repo string
}

// role says how a directory is watched because of the directory above it.
type role struct {
	kind kind // hookKind: hooks; attributesKind: info; projectKind: all of it is watched
	repo string
}

// view caches the entries of a directory.
type view struct {
	dir, path string // in the root, absolute
	changed   int64  // nanoseconds, as read
	read      time.Time
	role      role
	entries   int
	repo, top bool            // is a repository; has one
	installed bool            // is of a package manager, see dependencyDirs
	key       uint64          // of dir, see keyOf
	spots     map[string]spot // by names in the root
	indexes   []string        // of a repository, by names in the root
	below     []*view
}

// inventory finds what other programs run something by in a root. A directory
// is read again when its time of change says so.
type inventory struct {
	root    string
	top     *view
	special map[string]*view // directories that are not watched as their place says
	left    int              // entries that may still be looked at
	recent  map[string]*folder
	checked map[string]item // indexes that are harmless, as they were then
	lifted  []*lifted       // directories that are closed, until shut
}

// survey is the result of an inventory.
type survey struct {
	spots   map[string]spot
	indexes []string        // of repositories
	repos   map[string]bool // directories that git takes for a repository
	tops    map[string]bool // directories that have a .git, and the root
	dirs    []uint64        // keys of the directories that are not git's
	whole   bool            // nothing was left out
}

// take looks through the root. It follows no link, except to a repository that
// a .git leads to. Directories that are closed are open from then on, until
// shut. hookDirs, names in the root, are watched with all beneath,
// and so are the files and directories of guard, which are paths. included are
// names of files with git's settings.
func (v *inventory) take(hookDirs, included, guard []string) *survey {
	s := &survey{spots: map[string]spot{}, repos: map[string]bool{}, tops: map[string]bool{".": true}}
	known := v.special
	v.special, v.left = map[string]*view{}, scanEntries
	for _, dir := range hookDirs { // before they are met as other directories
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
	if v.top == nil {
		v.top = &view{dir: ".", path: v.root, key: keyOf(".")}
	}
	v.walk(s, v.top)
	for seen := -1; seen != len(s.spots) && v.left >= 0; { // repositories in directories of git's own
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
	return s
}

// enter looks through a directory that is watched in its own way.
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

// add adds a file that is protected, or a directory with all beneath. What is
// in repositories is found with them.
func (v *inventory) add(s *survey, known map[string]*view, path string) {
	name, err := filepath.Rel(v.root, path)
	if err != nil || !filepath.IsLocal(name) || name == "." || slices.Contains([]string{".git", "hooks", "attributes", "commondir"}, filepath.Base(name)) {
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

// leadsTo returns the directory that a .git or commondir leads to, if it is in
// the root.
func (v *inventory) leadsTo(name string) (dir string, ok bool) {
	target, err := filepath.EvalSymlinks(pointerTarget(filepath.Join(v.root, name)))
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(v.root, target)
	return rel, err == nil && filepath.IsLocal(rel)
}

// pointerTarget returns the absolute path that a .git or commondir says, ""
// if it says none. A link to a file counts as a file in the link's place, as
// for git.
func pointerTarget(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	file := path
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err == nil && !filepath.IsAbs(target) {
			target = filepath.Dir(path) + "/" + target
		}
		if inner, err := os.Stat(path); err != nil || !inner.Mode().IsRegular() {
			return target
		}
		if file, err = filepath.EvalSymlinks(path); err != nil {
			return ""
		}
	}
	text, err := readRegular(file, 64<<10)
	target := strings.TrimRight(string(text), "\r\n")
	if err == nil && strings.EqualFold(filepath.Base(path), ".git") {
		var ok bool
		if target, ok = strings.CutPrefix(target, "gitdir:"); !ok {
			return ""
		}
		target = strings.TrimLeft(target, " ")
	}
	if err != nil || target == "" || filepath.IsAbs(target) {
		return target
	}
	return filepath.Dir(path) + "/" + target // not cleaned: .. goes by what a link leads to
}

// walk looks through a directory and all beneath.
func (v *inventory) walk(s *survey, at *view) {
	changed, closed, ok := v.changed(at.path)
	if closed && unreadable(at.path) {
		if l, err := lift(v.root, at.dir, 0o500); err == nil {
			v.lifted = append(v.lifted, l)
		}
	}
	if !ok {
		at.below, at.spots, at.indexes, at.changed, at.read = nil, nil, nil, 0, time.Time{}
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
	for _, below := range at.below {
		if len(v.special) == 0 || v.special[below.dir] == nil {
			v.walk(s, below)
		}
	}
}

// changed returns when a directory was changed. Just before a command starts,
// its directories have been looked at already.
func (v *inventory) changed(path string) (changed int64, closed, ok bool) {
	if f := v.recent[path]; f != nil {
		return f.changed.UnixNano(), f.closed, true
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

// shut closes again what take had to open.
func (v *inventory) shut() {
	for _, l := range slices.Backward(v.lifted) {
		l.drop()
	}
	v.lifted = nil
}

// sortOut reads a directory. What is known of those in it is kept. No directory
// is left out: a repository may lie among the objects of another, and the names
// of a repository's parts may be those of any project.
func (v *view) sortOut(left int) {
	known := make(map[string]*view, len(v.below))
	for _, below := range v.below {
		known[below.dir] = below
	}
	v.read, v.spots, v.below, v.entries, v.repo, v.top = time.Now(), map[string]spot{}, nil, 0, false, false
	v.indexes = nil
	d, err := os.Open(v.path)
	if err != nil {
		return
	}
	entries, _ := d.ReadDir(left + 1)
	d.Close()
	v.entries = len(entries)
	kind := v.role.kind
	v.repo = kind == settingsKind || (kind == 0 || kind == projectKind) && isDotGit(filepath.Base(v.dir)) || kind == 0 && looksLikeRepository(entries)
	v.top = v.dir == "." || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return isDotGit(e.Name()) })
	for _, entry := range entries {
		name := filepath.Join(v.dir, entry.Name())
		switch {
		case kind == projectKind && (!v.repo || !v.ofRepository(name, entry)):
			v.watch(name, entry, v.role)
		case kind == projectKind:
		case kind == hookKind:
			if entry.IsDir() {
				v.descend(name, role{})
			} else if !strings.HasSuffix(entry.Name(), ".sample") {
				v.spots[name] = spot{hookKind, v.role.repo}
			}
		case kind == attributesKind:
			if entry.IsDir() {
				v.descend(name, role{})
			} else if entry.Name() == "attributes" {
				v.spots[name] = spot{attributesKind, v.role.repo}
			}
		case v.repo && v.ofRepository(name, entry):
		default:
			v.ofDirectory(name, entry)
		}
	}
	for i, below := range v.below {
		if was := known[below.dir]; was != nil && was.role == below.role {
			v.below[i] = was
		}
	}
}

// descend has a directory looked into.
func (v *view) descend(name string, as role) {
	path := filepath.Join(v.path, filepath.Base(name))
	if !pseudo(path) {
		v.below = append(v.below, &view{
			dir: name, path: path, role: as, key: keyOf(name),
			installed: v.installed || slices.Contains(dependencyDirs, filepath.Base(name)),
		})
	}
}

func isDotGit(name string) bool { return strings.EqualFold(name, ".git") }

// looksLikeRepository reports whether git would take a directory for one of
// its own, whatever its name: what these names are does not matter.
func looksLikeRepository(entries []os.DirEntry) bool {
	has := map[string]bool{}
	for _, entry := range entries {
		has[entry.Name()] = true
	}
	return has["HEAD"] && (has["objects"] && has["refs"] || has["commondir"])
}

// ofRepository sorts out an entry of a repository. It reports false for one
// that is as in any directory.
func (v *view) ofRepository(name string, entry os.DirEntry) bool {
	dir := v.dir
	if entry.Type().IsRegular() && (entry.Name() == "index" || strings.HasPrefix(entry.Name(), "sharedindex.")) {
		v.indexes = append(v.indexes, name)
	}
	switch entry.Name() {
	case "config", "config.worktree":
		v.spots[name] = spot{settingsKind, dir}
	case "commondir":
		v.spots[name] = spot{pointerKind, dir}
	case "hooks":
		if entry.IsDir() {
			v.descend(name, role{hookKind, dir})
		} else {
			v.spots[name] = spot{hookKind, dir}
		}
	case "info":
		if entry.IsDir() {
			v.descend(name, role{attributesKind, dir})
		} else {
			v.spots[name] = spot{hookKind, dir} // a link would hide what it leads to
		}
	default:
		return false
	}
	return true
}

// ofDirectory sorts out an entry of any directory.
func (v *view) ofDirectory(name string, entry os.DirEntry) {
	dir := v.dir
	switch {
	case isDotGit(entry.Name()) && !entry.IsDir():
		v.spots[name] = spot{pointerKind, dir}
	case v.top && entry.Name() == ".gitmodules" && !entry.IsDir():
		v.spots[name] = spot{settingsKind, dir}
	case !v.top && v.installed:
		v.ofAny(name, entry)
	default:
		switch sandbox.IsProjectName(filepath.Base(dir), entry.Name()) {
		case 1:
			v.watch(name, entry, role{projectKind, dir})
		case 2:
			v.watch(name, entry, role{projectKind, filepath.Dir(dir)})
		default:
			v.ofAny(name, entry)
		}
	}
}

func (v *view) ofAny(name string, entry os.DirEntry) {
	if entry.IsDir() {
		v.descend(name, role{})
	}
}

// watch adds a file that is watched, or a directory with all beneath.
func (v *view) watch(name string, entry os.DirEntry, as role) {
	switch {
	case isDotGit(entry.Name()) && !entry.IsDir():
		v.spots[name] = spot{pointerKind, filepath.Dir(name)}
	case !entry.IsDir():
		v.spots[name] = spot{projectKind, as.repo}
	case filepath.Base(name) == "worktrees" && filepath.Base(filepath.Dir(name)) == ".claude":
		v.descend(name, role{}) // where Claude Code checks projects out
	default:
		v.descend(name, as)
	}
}

// isProjectName reports whether an entry of any directory holds settings by
// which agents, editors and shells run programs.
func isProjectName(name string) bool { return sandbox.IsProjectName("", name) == 1 }

// dependencyDirs hold what package managers install. Packages bring their
// developers' settings along, and nobody opens an editor there.
var dependencyDirs = []string{"node_modules", "bower_components", "jspm_packages", "site-packages", "dist-packages", "vendor", "Pods"}
