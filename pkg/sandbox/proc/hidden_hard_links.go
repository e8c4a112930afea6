package proc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// hardLink is one path of a file with several hard links.
type hardLink struct {
	path string
	id   fileID
}

// otherHardLinks lists the paths of hard links of hidden files in the roots and
// in the searched directories of the homes. objects are the hidden files of the
// roots. The result may contain the hidden paths themselves.
func (r *Runner) otherHardLinks(s *spec, objects []supervise.Pinned) (names []string) {
	hiddenIDs := map[fileID]int{} // the number of links
	found := linkNames{}
	note := func(path string) {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && fileinfo.Links(info) > 1 {
			if id, ok := fileIDOf(info); ok {
				hiddenIDs[id] = int(fileinfo.Links(info))
				found.add(id, path)
			}
		}
	}
	for _, path := range s.Mask {
		note(path)
	}
	for _, object := range objects {
		note(object.Path)
	}
	r.eachStoreFile(s, note)
	if len(hiddenIDs) == 0 {
		return nil
	}
	r.mu.Lock()
	changed := !maps.Equal(hiddenIDs, r.hardLinkedIDs)
	r.hardLinkedIDs = hiddenIDs
	r.mu.Unlock()
	add := func(f *dirCache, dir string) {
		if changed { // a file may have got another link since
			f.hardLinked = nil
		}
		for _, other := range f.hardLinkedFiles(dir) {
			if hiddenIDs[other.id] > 0 {
				names = append(names, other.path)
				found.add(other.id, other.path)
			}
		}
	}
	for _, root := range s.Roots {
		of := r.secretScanOf(root.Path)
		of.mu.Lock()
		for dir, f := range of.dirs {
			add(f, dir)
		}
		of.mu.Unlock()
	}
	dirs := slices.Clone(s.homeDirs)
	for _, home := range s.homes {
		for _, dir := range homeStoreDirs {
			dirs = append(dirs, filepath.Join(home, dir))
		}
	}
	slices.Sort(dirs)
	r.mu.Lock()
	for _, dir := range slices.Compact(dirs) {
		if f := r.homeDirCache[dir]; f != nil {
			add(f, dir)
		}
	}
	r.mu.Unlock()
	return append(names, r.unsearchedHardLinks(s, hiddenIDs, found)...)
}

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

// unsearchedHardLinks returns the names of hidden files in those directories of the roots
// that are not searched for secrets, such as node_modules: a command may have moved a hard
// link there. It searches only if a hidden file has more links than names are found.
func (r *Runner) unsearchedHardLinks(s *spec, links map[fileID]int, found linkNames) (names []string) {
	missing := map[fileID]int{}
	for id, n := range links {
		if n > len(found[id]) {
			missing[id] = n - len(found[id])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var roots []string
	for _, root := range s.Roots {
		roots = append(roots, root.Path)
	}
	r.linkSearchMu.Lock()
	defer r.linkSearchMu.Unlock()
	if !r.linkSearch.isCurrent(missing, roots) {
		r.linkSearch = linkSearch{missing: missing, roots: roots, names: findHardLinks(roots, missing)}
	}
	for _, name := range r.linkSearch.names {
		names = append(names, name.path)
	}
	return names
}

// findHardLinks searches directories with everything below them for names of files. It
// reads up to maxLostSearchEntries entries.
func findHardLinks(dirs []string, of map[fileID]int) (names []hardLink) {
	left := maxLostSearchEntries
	for queue := slices.Clone(dirs); len(queue) > 0 && left > 0; queue = queue[1:] {
		d, err := os.Open(queue[0])
		if err != nil {
			continue
		}
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
				continue
			}
			if id, ok := fileIDOf(info); ok && of[id] > 0 {
				names = append(names, hardLink{path, id})
			}
		}
	}
	return names
}

// hardLinkedFiles lists the regular files of a directory that have several hard
// links. The result is cached until the directory's time of change differs,
// since a new link changes that.
func (f *dirCache) hardLinkedFiles(dir string) []hardLink {
	if f.hardLinked != nil && f.readAt.Sub(f.changed) >= supervise.SettledAfter {
		return f.hardLinked
	}
	f.hardLinked = []hardLink{}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Type() != 0 {
			continue
		}
		info, err := entry.Info()
		if err != nil || fileinfo.Links(info) < 2 {
			continue
		}
		if id, ok := fileIDOf(info); ok {
			f.hardLinked = append(f.hardLinked, hardLink{filepath.Join(dir, entry.Name()), id})
		}
	}
	return f.hardLinked
}

// eachStoreFile calls visit with the path of each file in the searched
// credential stores, up to maxStoreFiles.
func (r *Runner) eachStoreFile(s *spec, visit func(path string)) {
	left := maxStoreFiles
	for _, dir := range s.storeDirs {
		r.mu.Lock()
		f := r.storeDirCache[dir]
		r.mu.Unlock()
		if f == nil {
			continue
		}
		for _, name := range f.fileNames {
			if left--; left < 0 {
				return
			}
			visit(filepath.Join(dir, name))
		}
	}
}
