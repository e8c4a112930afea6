package changes

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// entryCache holds the entries of a set after the last command, so that the
// next command examines only its own changes. Changes that other programs make
// in the roots are found by Set.Changes.
type entryCache struct {
	version int       // of the record
	roots   [][]Entry // nil: not known
}

// allEntries returns the entries of all roots.
func (p *entryCache) allEntries() []Entry { return slices.Concat(p.roots...) }

// entriesAfter returns the entries of a set after a layer was finished, and
// caches them. before is the version of the set file before that.
func (s *Set) entriesAfter(r *setFile, layer string, before int) (*entryCache, error) {
	s.mu.Lock()
	known := s.cachedEntries
	s.mu.Unlock()
	now := &entryCache{version: r.Version, roots: make([][]Entry, len(r.Roots))}
	for i, root := range r.Roots {
		tree, err := nofollow.Open(root)
		if err != nil {
			return nil, err
		}
		upperDirs := s.upperDirs(r, i)
		if known.roots == nil || known.version != before || upperDirs[0] != s.upperDir(layer, i) {
			var list []Change
			list, err = diffRoot(r, i, tree, upperDirs)
			now.roots[i] = Entries(list)
		} else {
			now.roots[i], err = refreshEntries(r, i, tree, upperDirs, known.roots[i])
		}
		tree.Close() //nolint:errcheck // only read
		if err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.cachedEntries = *now
	s.mu.Unlock()
	return now, nil
}

// refreshEntries returns the entries of a root after its newest layer was
// added. known are the entries before that.
func refreshEntries(r *setFile, root int, tree *nofollow.Tree, upperDirs []string, known []Entry) ([]Entry, error) {
	u := incrementalDiff{rootDiff: rootDiff{root: root, tree: tree}, comparedPaths: map[string]bool{".": true}}
	err := u.addRootMode(r, upperDirs)
	if err == nil {
		err = u.compareDir(".", upperDirs, true)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(u.comparedTrees, comparePaths)
	return u.merge(known, Entries(u.sortedChanges())), nil
}

// incrementalDiff is a rootDiff that compares only the entries of the newest
// layer with the root.
type incrementalDiff struct {
	rootDiff
	comparedPaths map[string]bool // paths compared again
	comparedTrees []string        // paths compared again with everything below
}

// compareDir compares the entries of the newest directory in stack, which holds the
// directories at rel in the layers. visible has the same meaning as for
// rootDiff.compareDir.
func (u *incrementalDiff) compareDir(rel string, stack []string, visible bool) error {
	newest, older := stack[0], stack[1:]
	if isOpaque(newest) {
		u.comparedTrees = append(u.comparedTrees, rel)
		return u.rootDiff.compareDir(rel, stack, visible)
	}
	for i, dir := range older {
		if isOpaque(dir) {
			older, visible = older[:i+1], false
			break
		}
	}
	infos, err := readLayerDir(newest)
	if err != nil {
		return err
	}
	for _, info := range infos {
		name := info.Name()
		e := &layerEntry{}
		e.add(newest+"/"+name, info)
		for _, dir := range older {
			if info, err := os.Lstat(dir + "/" + name); err == nil {
				e.add(dir+"/"+name, info)
			}
		}
		if err := u.compare(path.Join(rel, name), e, visible); err != nil {
			return err
		}
	}
	return nil
}

// compare compares the path rel, an entry of the newest layer. If it was not a directory
// before, or is not one now, everything below it is compared again. visible is as in
// compareDir.
func (u *incrementalDiff) compare(rel string, e *layerEntry, visible bool) error {
	asBefore := visible // the root's directory, or that of an older layer, was visible
	if len(e.infos) > 1 {
		asBefore = e.infos[1].IsDir()
	}
	if !e.infos[0].IsDir() || !asBefore {
		u.comparedTrees = append(u.comparedTrees, rel)
		return u.rootDiff.compare(rel, e, visible)
	}
	u.comparedPaths[rel] = true
	below, shown, err := u.compareName(rel, e, visible)
	if err != nil {
		return err
	}
	return u.compareDir(rel, below, shown)
}

// merge returns known with the entries of the compared paths replaced by those
// in again. Both lists and the result are sorted.
func (u *incrementalDiff) merge(known, again []Entry) []Entry {
	merged := make([]Entry, 0, len(known)+len(again))
	trees := u.comparedTrees
	for _, e := range known {
		for len(trees) > 0 && !isAtOrBelow(trees[0], e.Path) && comparePaths(trees[0], e.Path) < 0 {
			trees = trees[1:]
		}
		if u.comparedPaths[e.Path] || len(trees) > 0 && isAtOrBelow(trees[0], e.Path) {
			continue
		}
		for len(again) > 0 && comparePaths(again[0].Path, e.Path) < 0 {
			merged, again = append(merged, again[0]), again[1:]
		}
		merged = append(merged, e)
	}
	return append(merged, again...)
}

// isAtOrBelow reports whether the slash path path is dir or in it.
func isAtOrBelow(dir, path string) bool {
	return path == dir || dir == "." || strings.HasPrefix(path, dir+"/")
}
