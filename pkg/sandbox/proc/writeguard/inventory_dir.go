package writeguard

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// view caches the entries of a directory.
type view struct {
	dir, path string // name in the root, absolute path
	changed   int64  // nanoseconds since 1970, as read
	read      time.Time
	role      role
	entries   int
	repo, top bool            // it is a repository; it has a .git
	installed bool            // belongs to a package manager, see dependencyDirs
	key       uint64          // of dir, see keyOf
	inside    string          // the repository that dir is or is in, without work trees in it
	spots     map[string]spot // by names in the root
	indexes   []string        // index files of a repository, by names in the root
	links     []string        // by names in the root, except in repositories and in directories of package managers
	below     []*view
}

// sortOut reads a directory, and keeps the cached views of its subdirectories.
// It skips no directory: a repository may be among the objects of another, and
// any project may use the names of a repository's parts.
func (v *view) sortOut(left int) {
	known := make(map[string]*view, len(v.below))
	for _, below := range v.below {
		known[below.dir] = below
	}
	v.read, v.spots, v.below, v.entries, v.repo, v.top = time.Now(), map[string]spot{}, nil, 0, false, false
	v.indexes, v.links = nil, nil
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
	switch {
	case v.repo:
		v.inside = v.dir
	case v.top && !v.written():
		v.inside = ""
	}
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
			} else {
				v.link(name, entry)
			}
		case kind == stepsKind:
			if entry.IsDir() {
				v.descend(name, role{})
			} else if entry.Name() == stepsFile && entry.Type()&fs.ModeSymlink == 0 {
				v.spots[name] = spot{stepsKind, v.role.repo}
			} else if entry.Type().IsRegular() && (entry.Name() == "strategy" || entry.Name() == "opts") {
				v.spots[name] = spot{optionsKind, v.role.repo}
			} else {
				v.link(name, entry)
			}
		case v.repo && v.ofRepository(name, entry) || v.link(name, entry):
		default:
			v.ofDirectory(name, entry)
		}
	}
	for i, below := range v.below {
		if was := known[below.dir]; was != nil && was.role == below.role && was.inside == below.inside {
			v.below[i] = was
		}
	}
}

// written reports whether a directory of a repository is one that git writes
// to. A .git in it does not make it a work tree.
func (v *view) written() bool {
	rel, err := filepath.Rel(v.inside, v.dir)
	return v.inside != "" && err == nil && slices.Contains(
		[]string{"logs", "refs", "objects", "info", "worktrees", "rebase-merge", "rebase-apply", "sequencer", "rr-cache", "branches", "remotes"}, firstPart(rel))
}

// link adds a link in a repository to the watched files, and reports whether
// the entry is one.
func (v *view) link(name string, entry os.DirEntry) bool {
	if v.inside == "" || entry.Type()&fs.ModeSymlink == 0 {
		return false
	}
	v.spots[name] = spot{linkKind, v.inside}
	return true
}

// descend adds a subdirectory to be searched, unless it is on a pseudo file
// system.
func (v *view) descend(name string, as role) {
	path := filepath.Join(v.path, filepath.Base(name))
	if !fileinfo.IsPseudoDir(path) {
		v.below = append(v.below, &view{
			dir: name, path: path, role: as, key: keyOf(name),
			inside: v.inside, installed: v.installed || slices.Contains(dependencyDirs, filepath.Base(name)),
		})
	}
}

// ofRepository handles an entry of a repository. It returns false for an entry
// that has no special meaning there.
func (v *view) ofRepository(name string, entry os.DirEntry) bool {
	dir := v.dir
	if entry.Type().IsRegular() && (entry.Name() == "index" || strings.HasPrefix(entry.Name(), "sharedindex.")) {
		v.indexes = append(v.indexes, name)
	}
	switch entry.Name() {
	case "config", "config.worktree":
		v.spots[name] = spot{settingsKind, dir}
	case "commondir", "gitdir":
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
			v.spots[name] = spot{hookKind, dir} // a link would hide its target
		}
	case "rebase-merge", "sequencer":
		if entry.IsDir() {
			v.descend(name, role{stepsKind, dir})
		} else {
			v.spots[name] = spot{hookKind, dir}
		}
	default:
		return false
	}
	return true
}

// ofDirectory handles an entry of any directory.
func (v *view) ofDirectory(name string, entry os.DirEntry) {
	dir := v.dir
	switch {
	case isDotGit(entry.Name()) && !entry.IsDir():
		v.spots[name] = spot{pointerKind, dir}
	case v.top && entry.Name() == ".gitmodules" && !entry.IsDir():
		v.spots[name] = spot{settingsKind, dir}
	case !v.top && v.installed:
		v.ofAny(name, entry)
	case entry.Type()&fs.ModeSymlink != 0 && projectfile.IsParent(entry.Name()) && leadsToDirectory(filepath.Join(v.path, entry.Name())):
		v.spots[name] = spot{projectKind, dir}
	default:
		switch projectfile.Depth(filepath.Base(dir), entry.Name()) {
		case 1:
			v.watch(name, entry, role{projectKind, dir})
		case 2:
			v.watch(name, entry, role{projectKind, filepath.Dir(dir)})
		default:
			v.ofAny(name, entry)
		}
	}
}

// ofAny handles an entry without a special meaning.
func (v *view) ofAny(name string, entry os.DirEntry) {
	switch {
	case entry.IsDir():
		v.descend(name, role{})
	case entry.Type()&fs.ModeSymlink != 0 && !v.installed:
		v.links = append(v.links, name)
	}
}

// leadsToDirectory reports whether a link leads to a directory, or to nothing
// so far.
func leadsToDirectory(link string) bool {
	info, err := os.Stat(link)
	return err != nil || info.IsDir()
}

// watch adds a watched file, or a directory with everything below.
func (v *view) watch(name string, entry os.DirEntry, as role) {
	switch {
	case isDotGit(entry.Name()) && !entry.IsDir():
		v.spots[name] = spot{pointerKind, filepath.Dir(name)}
	case !entry.IsDir():
		v.spots[name] = spot{projectKind, as.repo}
	case filepath.Base(name) == "worktrees" && filepath.Base(filepath.Dir(name)) == ".claude":
		v.descend(name, role{}) // Claude Code puts work trees there
	default:
		v.descend(name, as)
	}
}
