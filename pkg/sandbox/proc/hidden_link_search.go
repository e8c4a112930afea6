package proc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// linkName identifies a name of a file. It stays the same if the directory of the file, or
// one above it, is moved, so that one name that is seen at two places counts once.
type linkName struct {
	dir  fileID
	base string
}

// linkNames holds the known names of files with several hard links.
type linkNames map[fileID]map[linkName]bool

// addPath adds the name at path to the names of file id, unless path does not lead to it
// now.
func (l linkNames) addPath(id fileID, path string) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return
	}
	defer dir.Close()
	if info, err := dir.Lstat(filepath.Base(path)); err == nil {
		if now, ok := fileIDOf(info); ok && now == id {
			if of, err := dir.Stat("."); err == nil {
				l.add(id, nameIn(of, filepath.Base(path)))
			}
		}
	}
}

// add adds a name to the names of file id.
func (l linkNames) add(id fileID, name linkName) {
	if l[id] == nil {
		l[id] = map[linkName]bool{}
	}
	l[id][name] = true
}

// nameIn returns the name of a file in the directory with info.
func nameIn(info os.FileInfo, base string) linkName {
	dir, _ := fileIDOf(info)
	return linkName{dir, base}
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
	w := linkWalk{of: missing, names: map[linkName]hardLink{}}
	for round := 0; round < maxLinkRounds && w.isIncomplete(found); round++ {
		if round > 0 {
			time.Sleep(minChangeGap) // so that the times of earlier changes show later ones
		}
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
	names   map[linkName]hardLink // the last path of each name
	changed bool                  // a directory changed during the last search
	moved   string                // a directory that was moved or removed during the last search
}

// isIncomplete reports whether a file has more links than the known and the found names.
func (w *linkWalk) isIncomplete(known linkNames) bool {
	unknown := map[fileID]int{}
	for name, link := range w.names {
		if !known[link.id][name] {
			unknown[link.id]++
		}
	}
	for id, n := range w.of {
		if unknown[id] < n {
			return true
		}
	}
	return false
}

// readDir is a directory as it was when a walk read it.
type readDir struct {
	info os.FileInfo
	at   time.Time // when reading began
}

// walk searches directories with everything below them for the files of w.of, and adds
// their names to w.names. It reads up to maxLostSearchEntries entries. changed is set if
// a directory changed meanwhile, or so shortly before that its time of change would not
// show the next change; moved is then a directory that was moved or removed, if any.
func (w *linkWalk) walk(dirs []string) {
	left := maxLostSearchEntries
	seen := map[string]readDir{}
	for queue := slices.Clone(dirs); len(queue) > 0 && left > 0; queue = queue[1:] {
		began := time.Now()
		info, entries, err := w.addNamesIn(queue[0], left)
		if err != nil {
			if isGone(err) {
				w.changed, w.moved = true, queue[0]
			}
			continue
		}
		seen[queue[0]] = readDir{info, began}
		left -= len(entries)
		for _, entry := range entries {
			if path := filepath.Join(queue[0], entry.Name()); entry.IsDir() && !fileinfo.IsPseudoDir(path) {
				queue = append(queue, path)
			}
		}
	}
	for dir, was := range seen {
		is, err := os.Lstat(dir)
		switch {
		case err != nil || !os.SameFile(is, was.info):
			w.changed, w.moved = true, dir
		case !is.ModTime().Equal(was.info.ModTime()) || was.at.Sub(is.ModTime()) < minChangeGap:
			w.changed = true
		}
	}
}

// addNamesIn adds the names of the files of w.of in a directory to w.names. It returns the
// directory's entries, at most limit, and its info. Files are looked up relative to the
// opened directory, since its path may lead to another one by now.
func (w *linkWalk) addNamesIn(path string, limit int) (info os.FileInfo, entries []os.DirEntry, err error) {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	f, err := dir.Open(".")
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	entries, _ = f.ReadDir(limit) // those read before an error
	for _, entry := range entries {
		if entry.Type() != 0 {
			continue
		}
		file, err := dir.Lstat(entry.Name())
		if err != nil {
			w.changed = true
			continue
		}
		if id, ok := fileIDOf(file); ok && fileinfo.Links(file) > 1 && w.of[id] > 0 {
			w.names[nameIn(info, entry.Name())] = hardLink{filepath.Join(path, entry.Name()), id}
		}
	}
	return info, entries, nil
}
