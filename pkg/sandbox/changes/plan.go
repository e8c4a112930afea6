package changes

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// plan holds the changes that Apply makes in one root.
type plan struct {
	path    string         // of the root
	tree    *nofollow.Tree // the root
	upper   string         // "" if the set has no finished layer for the root
	chosen  []Change
	parents map[string]bool // directories created only because of entries in them
	// For files with several hard links in the layer, by inode:
	// sameContentLinks has the path of the first link whose content in the root is
	// the same, copiedLinks the path of a file copied to the root.
	sameContentLinks, copiedLinks map[uint64]string
	known                         baseStates              // the states before the changes
	checked                       map[string]checkedEntry // what findConflicts found in the root, by path
	isReplaced                    map[string]bool         // paths in a directory that the plan makes in place of a file
	setInPlace                    map[uint64]bool         // inodes of the root's files whose mode and time applyFile has set
	recorded                      []string                // directories that recordDirs has added
}

// newPlan chooses the changes of a root, and adds the created directories that
// contain them. It deletes from unused those paths that select a change. The
// caller closes the plan's tree.
func (s *Set) newPlan(r *setFile, root int, paths []string, unused *[]string) (*plan, error) {
	tree, err := nofollow.Open(r.Roots[root])
	if err != nil {
		return nil, err
	}
	p := &plan{path: r.Roots[root], tree: tree, parents: map[string]bool{}, sameContentLinks: map[uint64]string{}}
	uppers := s.upperDirs(r, root)
	if len(uppers) == 0 {
		return p, nil
	}
	p.upper = uppers[0]
	if err := s.replaceOpaqueMarks(r, root, tree, p.upper); err != nil {
		tree.Close() //nolint:errcheck // nothing was written through it
		return nil, err
	}
	list, err := diffRoot(r, root, tree, uppers)
	if err != nil {
		tree.Close() //nolint:errcheck // nothing was written through it
		return nil, err
	}
	made, has := map[string]Change{}, map[string]bool{}
	for _, c := range list {
		if c.New != nil && c.New.IsDir() && c.Kind != Touched {
			made[c.Path] = c
		}
		if linkCount(c.New) > 1 && p.hasSameContent(c) {
			ino, _ := inodeAndChangeTime(c.New)
			if _, ok := p.sameContentLinks[ino]; !ok {
				p.sameContentLinks[ino] = c.Path
			}
		}
		if !Selects(paths, p.path, c.Path) {
			continue
		}
		*unused = slices.DeleteFunc(*unused, func(given string) bool { return isSelecting(given, p.path, c.Path) })
		var above []Change
		for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
			if up, ok := made[dir]; ok && !has[dir] {
				above = append(above, up)
				p.parents[dir], has[dir] = true, true
			}
		}
		slices.Reverse(above)
		p.chosen = append(append(p.chosen, above...), c)
		has[c.Path] = c.Dir
	}
	return p, nil
}

// Selects reports whether paths, as given to Set.Apply, select the change at
// rel in a root. Empty paths select every change.
func Selects(paths []string, root, rel string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(given string) bool { return isSelecting(given, root, rel) })
}

// isSelecting reports whether a path, as given to Set.Apply, selects the change at rel in
// a root.
func isSelecting(given, root, rel string) bool {
	if given == "" { // which Clean makes the whole root
		return false
	}
	name := filepath.ToSlash(filepath.Clean(given))
	if filepath.IsAbs(given) {
		inside, err := filepath.Rel(root, given)
		if err != nil || !filepath.IsLocal(inside) {
			return false
		}
		name = filepath.ToSlash(inside)
	}
	return name == "." || name == rel || strings.HasPrefix(rel, name+"/")
}

// findConflicts returns the chosen changes that cannot be applied to the root
// as it is now, with the reasons. known are the states before the changes. begun are the
// directories in which an interrupted call has worked, which has changed their modes.
func (p *plan) findConflicts(known baseStates, begun map[string]dirMeta) (found []Refusal) {
	p.known, p.checked, p.isReplaced = known, map[string]checkedEntry{}, map[string]bool{}
	ours := map[string]bool{} // directories that are replaced with their content
	for _, c := range p.chosen {
		parent := path.Dir(c.Path)
		why := ""
		switch {
		case ours[parent]:
			ours[c.Path] = c.New != nil && c.New.IsDir()
			p.isReplaced[c.Path] = true
		default:
			p.addChecked(c) // first, so that no later change is missed
			if _, ok := begun[c.Path]; !ok || !c.Dir || c.Kind == Deleted {
				why = known.conflictReason(p.tree, c)
			}
			if info, err := p.tree.Lstat(parent); why == "" && parent != "." && c.Kind != Deleted && (err != nil || !info.IsDir()) {
				why = "cannot be written: the directory " + parent + " no longer exists"
			}
			ours[c.Path] = c.New != nil && c.New.IsDir() && (c.Old == nil || !c.Old.IsDir())
		}
		if why != "" {
			found = append(found, Refusal{Path: absPath(p.path, c.Path), Why: why})
		}
	}
	return found
}

// removeRefused removes the changes that refuse does not permit, and those
// below them, from the plan, and adds them to report.Refused.
func (p *plan) removeRefused(refuse func(string) string, report *Report) {
	if refuse == nil {
		return
	}
	var out string
	p.chosen = slices.DeleteFunc(p.chosen, func(c Change) bool {
		if c.Kind == Touched && c.Dir {
			return false
		}
		why := ""
		if out == "" || !strings.HasPrefix(c.Path, out+"/") {
			out = ""
			if why = refuse(absPath(p.path, c.Path)); why == "" {
				return false
			}
		}
		if why != "" {
			report.Refused = append(report.Refused, Refusal{Path: absPath(p.path, c.Path), Why: why})
			out = c.Path
		}
		return true
	})
}

// recordDirs returns known with mode and time of the layer's directories in
// which Apply works added, because its work changes them. It keeps the records
// of an interrupted call.
func (p *plan) recordDirs(known map[string]dirMeta) map[string]dirMeta {
	if known == nil {
		known = map[string]dirMeta{}
	}
	note := func(rel, source string) {
		if info, err := os.Lstat(source); err == nil && info.IsDir() {
			if _, there := known[rel]; !there {
				known[rel] = p.mergedDirMeta(rel, info)
				p.recorded = append(p.recorded, rel)
			}
		}
	}
	if p.upper == "" {
		return known
	}
	for _, c := range p.chosen {
		if c.New != nil && c.New.IsDir() { // also one that replaces a file
			note(c.Path, c.source)
		}
		for dir := path.Dir(c.Path); ; dir = path.Dir(dir) {
			note(dir, filepath.Join(p.upper, filepath.FromSlash(dir)))
			if dir == "." {
				break
			}
		}
	}
	return known
}

// applyChosen makes the chosen changes in the root and adds them to
// report.Applied. Then it gives the directories in dirs their mode and time. It returns
// CONFLICT at an entry that another program has changed since findConflicts. Before, it
// completes the directories of the applied changes and deletes them from dirs, as those
// in which it has not worked.
func (p *plan) applyChosen(dirs map[string]dirMeta, report *Report) error {
	p.copiedLinks, p.setInPlace = map[uint64]string{}, map[uint64]bool{}
	for i, c := range p.chosen {
		why, err := p.laterConflict(c), error(nil)
		if why == "" {
			why, err = p.applyChange(c)
		}
		if why != "" {
			conflict := toolerr.New(toolerr.Conflict, "applying stopped at %s: it %s; the changes before it are applied: apply the others by their names, or discard them", pathname.Escape(absPath(p.path, c.Path)), why)
			if err := p.finishDirs(dirs, dirsOf(p.chosen[:i])); err != nil {
				return errors.Join(conflict, err)
			}
			p.forgetDirs(dirs)
			return conflict
		}
		if err != nil {
			return fmt.Errorf("%s: %w", absPath(p.path, c.Path), err)
		}
		if !p.parents[c.Path] {
			report.Applied = append(report.Applied, c)
		}
	}
	all := maps.Clone(dirs) // the caller still needs dirs if this is interrupted
	return p.finishDirs(all, slices.Collect(maps.Keys(all)))
}

// forgetDirs deletes from dirs what recordDirs has added. Others may change these
// directories before the next call, which records them again.
func (p *plan) forgetDirs(dirs map[string]dirMeta) {
	for _, rel := range p.recorded {
		delete(dirs, rel)
	}
}

// dirsOf returns the paths of the directories that changes make or change, and of those
// above a change.
func dirsOf(list []Change) []string {
	all := map[string]bool{}
	for _, c := range list {
		if c.New != nil && c.New.IsDir() {
			all[c.Path] = true
		}
		for dir := path.Dir(c.Path); !all[dir]; dir = path.Dir(dir) {
			all[dir] = true
		}
	}
	return slices.Collect(maps.Keys(all))
}

// finishDirs gives directories of the root their mode and time from dirs, those below
// another one first, and deletes them from dirs.
func (p *plan) finishDirs(dirs map[string]dirMeta, paths []string) error {
	slices.SortFunc(paths, func(a, b string) int { return comparePaths(b, a) })
	for _, rel := range paths {
		want, ok := dirs[rel]
		if !ok {
			continue
		}
		if err := p.finishDir(rel, want); err != nil {
			return fmt.Errorf("%s: %w", absPath(p.path, rel), err)
		}
		delete(dirs, rel)
	}
	return nil
}
