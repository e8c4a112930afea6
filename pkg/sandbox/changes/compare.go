package changes

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// rootDiff collects the differences between a root and the view through its
// layers.
type rootDiff struct {
	root      int
	tree      *nofollow.Tree
	pathsOnly bool // do not compare contents
	changes   []Change
}

// layerEntry holds the versions of one name in the upper directories, the
// newest first.
type layerEntry struct {
	paths []string
	infos []fs.FileInfo
}

// add adds an older version: its path in the layer and its info.
func (e *layerEntry) add(name string, info fs.FileInfo) {
	e.paths, e.infos = append(e.paths, name), append(e.infos, info)
}

// diffRoot returns the changes of one root, sorted by path. upperDirs are the upper
// directories of its layers, the newest first. root is its index in r.Roots.
func diffRoot(r *setFile, root int, tree *nofollow.Tree, upperDirs []string) ([]Change, error) {
	u := rootDiff{root: root, tree: tree}
	err := u.addRootMode(r, upperDirs)
	if err == nil {
		err = u.compareDir(".", upperDirs, true)
	}
	return u.sortedChanges(), err
}

// sortedChanges sorts u.changes by comparePaths and returns them.
func (u *rootDiff) sortedChanges() []Change {
	slices.SortFunc(u.changes, func(a, b Change) int { return comparePaths(a.Path, b.Path) })
	return u.changes
}

// addRootMode adds the change of the root's own mode, if there is one. It
// ignores the root's times, which each command that works in the root changes.
func (u *rootDiff) addRootMode(r *setFile, upperDirs []string) error {
	if _, changed := r.RootModes[u.root]; !changed || len(upperDirs) == 0 {
		return nil
	}
	old, err := u.tree.Lstat(".")
	if err != nil {
		return err
	}
	now, err := os.Lstat(upperDirs[0])
	if err == nil && now.Mode() != old.Mode() {
		u.add(Change{Entry: Entry{Path: ".", Kind: Modified, Dir: true}, Old: old, New: now, source: upperDirs[0]})
	}
	return err
}

// compareDir compares the directory rel and everything below it. stack holds the
// directories of this path in the layers, the newest first. visible means that
// an entry of the root's own directory shows if no layer has its name.
func (u *rootDiff) compareDir(rel string, stack []string, visible bool) error {
	names, opaque, err := mergedEntries(stack)
	if err != nil {
		return err
	}
	visible = visible && !opaque
	if !visible {
		if err := u.addHiddenDeletions(rel, names); err != nil {
			return err
		}
	}
	for name, e := range names {
		if err := u.compare(path.Join(rel, name), e, visible); err != nil {
			return err
		}
	}
	return nil
}

// mergedEntries returns the entries of the merged directories of stack, which are paths
// in layers, by name. opaque is true if one of the directories hides everything below it;
// the directories after it are not read.
func mergedEntries(stack []string) (names map[string]*layerEntry, opaque bool, err error) {
	names = map[string]*layerEntry{}
	for _, dir := range stack {
		entries, err := readLayerDir(dir)
		if err != nil {
			return nil, false, err
		}
		for _, info := range entries {
			e := names[info.Name()]
			if e == nil {
				e = &layerEntry{}
				names[info.Name()] = e
			}
			e.add(dir+"/"+info.Name(), info)
		}
		if isOpaque(dir) {
			return names, true, nil
		}
	}
	return names, false, nil
}

// readLayerDir returns the entries of a directory of a layer, even if its mode
// does not allow its owner to read it.
func readLayerDir(dir string) ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		info, statErr := os.Lstat(dir)
		if statErr != nil || os.Chmod(dir, 0o700) != nil {
			return nil, err
		}
		entries, err = os.ReadDir(dir)
		defer os.Chmod(dir, info.Mode().Perm()) //nolint:errcheck // the owner could change it just now
	}
	if err != nil {
		return nil, err
	}
	infos := make([]fs.FileInfo, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// addHiddenDeletions adds a deletion for each entry of the root's directory rel
// that an opaque directory hides and that no layer has.
func (u *rootDiff) addHiddenDeletions(rel string, names map[string]*layerEntry) error {
	all, err := u.tree.Names(rel)
	if nofollow.IsMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range all {
		if names[name] == nil {
			info, err := u.tree.Lstat(path.Join(rel, name))
			if err != nil {
				continue // deleted meanwhile
			}
			u.add(Change{Entry: Entry{Path: path.Join(rel, name), Kind: Deleted}, Old: info})
		}
	}
	return nil
}

// compare adds the changes of the path rel, with the versions e in the layers,
// and of everything below it. visible is as in compareDir.
func (u *rootDiff) compare(rel string, e *layerEntry, visible bool) error {
	below, visible, err := u.compareName(rel, e, visible)
	if err != nil || below == nil {
		return err
	}
	return u.compareDir(rel, below, visible)
}

// compareName adds the change of the path rel itself, without its entries. For a
// directory it returns the directories of this name that overlayfs merges; shown reports
// whether the root's directory is one of them. below is nil for other files. visible is
// as in compareDir.
func (u *rootDiff) compareName(rel string, e *layerEntry, visible bool) (below []string, shown bool, err error) {
	top := e.infos[0]
	old, err := u.tree.Lstat(rel)
	if nofollow.IsMissing(err) {
		old = nil
	} else if err != nil {
		return nil, false, err
	}
	socket := top.Mode()&fs.ModeSocket != 0 // its program has ended
	switch {
	case isWhiteout(top) || socket && old != nil && old.Mode()&fs.ModeSocket == 0:
		if old != nil {
			u.add(Change{Entry: Entry{Path: rel, Kind: Deleted}, Old: old})
		}
		return nil, false, nil
	case socket:
		return nil, false, nil
	case !top.IsDir():
		u.add(Change{Entry: Entry{Path: rel, Kind: u.changeKind(rel, e.paths[0], old, top)}, Old: old, New: top, source: e.paths[0]})
		return nil, false, nil
	}
	below = e.paths
	for i, info := range e.infos {
		if !info.IsDir() {
			below, visible = e.paths[:i], false
			break
		}
	}
	kind := Touched
	switch {
	case old == nil:
		kind = Created
	case !old.IsDir() || old.Mode() != top.Mode():
		kind = Modified
	}
	u.add(Change{Entry: Entry{Path: rel, Kind: kind}, Old: old, New: top, source: e.paths[0]})
	return below, visible && old != nil && old.IsDir(), nil
}

// add appends c to u.changes, with its Root, Dir and Linked set.
func (u *rootDiff) add(c Change) {
	c.Root = u.root
	c.Dir = (c.New == nil || c.New.IsDir()) && (c.Old == nil || c.Old.IsDir())
	c.Linked = c.OtherHardLinks() > 0
	u.changes = append(u.changes, c)
}

// changeKind compares the new version of a file, which is not a directory, at
// path source in a layer, with old, the root's version. With pathsOnly it reads
// no content: then an equal mode gives Touched.
func (u *rootDiff) changeKind(rel, source string, old, now fs.FileInfo) Kind {
	switch {
	case old == nil:
		return Created
	case old.Mode() != now.Mode():
		return Modified
	case u.pathsOnly:
		return Touched
	case now.Mode()&fs.ModeSymlink != 0:
		was, _ := u.tree.Readlink(rel)
		if is, _ := os.Readlink(source); is == was {
			return Touched
		}
		return Modified
	case !now.Mode().IsRegular():
		return Touched
	case old.Size() != now.Size():
		return Modified
	}
	if same, err := hasSameContent(u.tree, rel, source); err == nil && same {
		return Touched
	}
	return Modified
}

// comparePaths orders paths so that a directory is directly before its entries.
func comparePaths(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			switch {
			case a[i] == '/':
				return -1
			case b[i] == '/':
				return 1
			}
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}
