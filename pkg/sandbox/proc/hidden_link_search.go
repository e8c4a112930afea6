package proc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// linkNames holds the known names of files with several hard links.
type linkNames map[fileID]map[string]bool

// add adds a name. Names that lead to one entry through different links of directories
// are one name.
func (l linkNames) add(id fileID, path string) {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if l[id] == nil {
		l[id] = map[string]bool{}
	}
	l[id][path] = true
}

// linkSearch is the last search for hard links in directories that are not searched for
// secrets.
type linkSearch struct {
	missing map[fileID]int // how many names were unknown before, by file
	roots   []string
	names   []hardLink
}

// isCurrent reports whether a search for the same would find the same. A command can move
// the directory of a name that was found, but then the name is gone.
func (l *linkSearch) isCurrent(missing map[fileID]int, roots []string) bool {
	return maps.Equal(l.missing, missing) && slices.Equal(l.roots, roots) && !slices.ContainsFunc(l.names, func(name hardLink) bool {
		info, err := os.Lstat(name.path)
		id, ok := fileID{}, false
		if err == nil {
			id, ok = fileIDOf(info)
		}
		return !ok || id != name.id
	})
}

// unsearchedHardLinks returns the hard links of hidden files in those directories of the
// roots that are not searched for secrets, such as node_modules, and in those that were
// moved during the search: a command may have moved a link there. It searches only if a
// hidden file has more links than names are found.
func (r *Runner) unsearchedHardLinks(s *spec, links map[fileID]int, found linkNames) ([]hardLink, error) {
	missing := map[fileID]int{}
	for id, n := range links {
		if n > len(found[id]) {
			missing[id] = n - len(found[id])
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	var roots []string
	for _, root := range s.Roots {
		roots = append(roots, root.Path)
	}
	r.linkSearchMu.Lock()
	defer r.linkSearchMu.Unlock()
	if r.linkSearch.isCurrent(missing, roots) {
		return r.linkSearch.names, nil
	}
	w := linkWalk{of: missing, names: map[string]hardLink{}}
	for round := 0; round < maxLinkRounds && w.isIncomplete(found); round++ {
		w.moved, w.changed = "", false
		w.walk(roots)
		if !w.changed {
			w.moved = ""
			break
		}
	}
	if w.moved != "" && w.isIncomplete(found) {
		return nil, errMovedTooFast(filepath.Join(w.moved, "x"))
	}
	r.linkSearch = linkSearch{missing: missing, roots: roots, names: slices.Collect(maps.Values(w.names))}
	return r.linkSearch.names, nil
}

// maxLinkRounds bounds the searches for hard links while directories are moved.
const maxLinkRounds = 10

// linkWalk searches for the names of files.
type linkWalk struct {
	of      map[fileID]int
	names   map[string]hardLink // by path
	changed bool                // a directory changed during the last search
	moved   string              // a directory that was moved or removed during the last search
}

// isIncomplete reports whether a file has more links than the known and the found names.
func (w *linkWalk) isIncomplete(known linkNames) bool {
	all := map[fileID]int{}
	for id, names := range known {
		all[id] = len(names)
	}
	for path, name := range w.names {
		if !known[name.id][path] {
			all[name.id]++
		}
	}
	for id, n := range w.of {
		if all[id] < n+len(known[id]) {
			return true
		}
	}
	return false
}

// walk searches directories with everything below them for the files of w.of, and adds
// their names to w.names. It reads up to maxLostSearchEntries entries. changed is set if
// a directory changed meanwhile, and moved is then one that was moved or removed.
func (w *linkWalk) walk(dirs []string) {
	left := maxLostSearchEntries
	seen := map[string]os.FileInfo{}
	for queue := slices.Clone(dirs); len(queue) > 0 && left > 0; queue = queue[1:] {
		d, err := os.Open(queue[0])
		if err != nil {
			if isGone(err) {
				w.changed, w.moved = true, queue[0]
			}
			continue
		}
		seen[queue[0]], _ = d.Stat()
		entries, _ := d.ReadDir(left)
		d.Close()
		left -= len(entries)
		for _, entry := range entries {
			path := filepath.Join(queue[0], entry.Name())
			if entry.IsDir() && !fileinfo.IsPseudoDir(path) {
				queue = append(queue, path)
			}
			if entry.Type() != 0 {
				continue
			}
			info, err := entry.Info()
			if err != nil || fileinfo.Links(info) < 2 {
				w.changed = w.changed || err != nil
				continue
			}
			if id, ok := fileIDOf(info); ok && w.of[id] > 0 {
				w.names[path] = hardLink{path, id}
			}
		}
	}
	for dir, was := range seen {
		is, err := os.Lstat(dir)
		switch {
		case err != nil || was == nil || !os.SameFile(is, was):
			w.changed, w.moved = true, dir
		case !is.ModTime().Equal(was.ModTime()):
			w.changed = true
		}
	}
}
