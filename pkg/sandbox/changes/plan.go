package changes

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// plan lists the changes to make in one root.
type plan struct {
	path    string
	real    *nofollow.Tree
	upper   string // "" if the set has no finished layer for the root
	chosen  []Change
	parents map[string]bool // directories created only because of entries in them
	all     bool
	// For files with several hard links in the layer, by inode: kept is the
	// path of a link whose content in the root is the same, copied the path of
	// the copied file.
	kept, copied map[uint64]string
}

// plan chooses the changes of a root. It removes the paths that select a
// change from unused.
func (s *Set) plan(r *record, root int, paths []string, unused *[]string) (*plan, error) {
	real, err := nofollow.Open(r.Roots[root])
	if err != nil {
		return nil, err
	}
	p := &plan{path: r.Roots[root], real: real, parents: map[string]bool{}, kept: map[uint64]string{}, all: len(paths) == 0}
	uppers := s.uppers(r, root)
	if len(uppers) == 0 {
		return p, nil
	}
	p.upper = uppers[0]
	if err := s.expose(r, root, real, p.upper); err != nil {
		real.Close() //nolint:errcheck // nothing was written through it
		return nil, err
	}
	list, err := diff(r, root, real, uppers)
	if err != nil {
		real.Close() //nolint:errcheck // nothing was written through it
		return nil, err
	}
	made, has := map[string]Change{}, map[string]bool{}
	for _, c := range list {
		if c.New != nil && c.New.IsDir() && c.Kind != Touched {
			made[c.Path] = c
		}
		if names(c.New) > 1 && p.keeps(c) {
			ino, _ := identity(c.New)
			p.kept[ino] = c.Path
		}
		by, ok := chooses(paths, p.path, c.Path)
		if !ok && !p.all {
			continue
		}
		*unused = slices.DeleteFunc(*unused, func(given string) bool { return given == by })
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

// Chooses reports whether paths, as given to Set.Apply, select a change. Empty
// paths select every change.
func Chooses(paths []string, root, rel string) bool {
	_, ok := chooses(paths, root, rel)
	return ok || len(paths) == 0
}

// chooses returns the path that selects a change. It returns false if none
// does.
func chooses(paths []string, root, rel string) (string, bool) {
	for _, given := range paths {
		if given == "" { // which Clean makes the whole root
			continue
		}
		name := filepath.ToSlash(filepath.Clean(given))
		if filepath.IsAbs(given) {
			inside, err := filepath.Rel(root, given)
			if err != nil || !filepath.IsLocal(inside) {
				continue
			}
			name = filepath.ToSlash(inside)
		}
		if name == "." || name == rel || strings.HasPrefix(rel, name+"/") {
			return given, true
		}
	}
	return "", false
}

// conflicts returns the chosen changes that cannot be applied, with the
// reasons.
func (p *plan) conflicts(known bases) (found []Refusal) {
	ours := map[string]bool{} // directories that are replaced with their content
	for _, c := range p.chosen {
		parent := path.Dir(c.Path)
		why := ""
		switch {
		case ours[parent]:
			ours[c.Path] = c.New != nil && c.New.IsDir()
		default:
			why = known.conflict(p.real, c)
			if info, err := p.real.Lstat(parent); why == "" && parent != "." && c.Kind != Deleted && (err != nil || !info.IsDir()) {
				why = "has no directory " + parent + " any more"
			}
			ours[c.Path] = c.New != nil && c.New.IsDir() && (c.Old == nil || !c.Old.IsDir())
		}
		if why != "" {
			found = append(found, Refusal{Path: abs(p.path, c.Path), Why: why})
		}
	}
	return found
}

// leaveOut removes the refused changes from the plan, and reports them.
func (p *plan) leaveOut(refuse func(string) string, report *Report) {
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
			if why = refuse(abs(p.path, c.Path)); why == "" {
				return false
			}
		}
		if why != "" {
			report.Refused = append(report.Refused, Refusal{Path: abs(p.path, c.Path), Why: why})
			out = c.Path
		}
		return true
	})
}

// directories records mode and time of the directories in which Apply works,
// since its work changes them. It keeps the records of an interrupted call.
func (p *plan) directories(known map[string]meta) map[string]meta {
	if known == nil {
		known = map[string]meta{}
	}
	note := func(rel, source string) {
		if info, err := os.Lstat(source); err == nil && info.IsDir() {
			if _, there := known[rel]; !there {
				known[rel] = meta{Mode: info.Mode(), Modified: info.ModTime()}
			}
		}
	}
	if p.upper == "" {
		return known
	}
	for _, c := range p.chosen {
		if c.source != "" && c.Dir {
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

// run makes the changes of the plan.
func (p *plan) run(dirs map[string]meta, report *Report) error {
	p.copied = map[uint64]string{}
	for _, c := range p.chosen {
		if err := p.change(c); err != nil {
			return fmt.Errorf("%s: %w", abs(p.path, c.Path), err)
		}
		if !p.parents[c.Path] {
			report.Applied = append(report.Applied, c)
		}
	}
	var order []string
	for rel := range dirs {
		order = append(order, rel)
	}
	slices.SortFunc(order, func(a, b string) int { return comparePaths(b, a) })
	for _, rel := range order {
		if err := p.finishDir(rel, dirs[rel]); err != nil {
			return fmt.Errorf("%s: %w", abs(p.path, rel), err)
		}
	}
	return nil
}
