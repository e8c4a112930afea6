package walk

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// tally holds the counts of one worker for the report.
type tally struct {
	files, dirs int // visited
	ignored     int
	ignoredIn   map[string]*DirCount
	ignoredLast *DirCount // the count that was changed last
	ignoredDirs []string
	unread      int
	unreadList  []Fault
	tooDeep     int
	deepDirs    []string
}

// countVisited counts a visited entry.
func (t *tally) countVisited(e *Entry) {
	if e.IsDir() {
		t.dirs++
	} else {
		t.files++
	}
}

// countIgnored counts an ignored entry.
func (t *tally) countIgnored(e *Entry) {
	t.ignored++
	dir := "."
	if n := len(e.Path) - len(e.Name); n > 0 {
		dir = e.Path[:n-1]
	}
	c := t.ignoredLast
	if c == nil || c.Path != dir {
		if c = t.ignoredIn[dir]; c == nil && len(t.ignoredIn) < maxListed {
			if t.ignoredIn == nil {
				t.ignoredIn = make(map[string]*DirCount)
			}
			c = &DirCount{Path: strings.Clone(dir)}
			t.ignoredIn[c.Path] = c
		}
		t.ignoredLast = c
	}
	if c != nil && e.IsDir() {
		c.Dirs++
	} else if c != nil {
		c.Files++
	}
	if e.IsDir() { // keep the first by path, whichever worker finds them
		if t.ignoredDirs = append(t.ignoredDirs, strings.Clone(e.Path)); len(t.ignoredDirs) == 2*maxListed {
			t.ignoredDirs = sortedHead(t.ignoredDirs, cmp.Compare[string])
		}
	}
}

// countUnreadable counts a directory that could not be read.
func (t *tally) countUnreadable(path string, err error) {
	t.unread++
	if len(t.unreadList) < maxListed {
		t.unreadList = append(t.unreadList, Fault{Path: strings.Clone(path), Err: err})
	}
}

// countTooDeep counts a directory that was not entered because of MaxDepth.
func (t *tally) countTooDeep(path string) {
	t.tooDeep++
	if len(t.deepDirs) < maxListed {
		t.deepDirs = append(t.deepDirs, strings.Clone(path))
	}
}

// report returns the report and error of a walk, after all workers have
// returned.
func (w *walker) report(workers []*worker) (Report, error) {
	var r Report
	in := make(map[string]*DirCount)
	for _, t := range workers {
		r.Files += t.files
		r.Dirs += t.dirs
		r.Ignored += t.ignored
		r.Unreadable += t.unread
		r.TooDeep += t.tooDeep
		r.IgnoredDirs = append(r.IgnoredDirs, t.ignoredDirs...)
		r.UnreadableDirs = append(r.UnreadableDirs, t.unreadList...)
		r.TooDeepDirs = append(r.TooDeepDirs, t.deepDirs...)
		for dir, c := range t.ignoredIn {
			if in[dir] == nil {
				in[dir] = &DirCount{Path: dir}
			}
			in[dir].Files += c.Files
			in[dir].Dirs += c.Dirs
		}
	}
	for _, c := range in {
		r.IgnoredIn = append(r.IgnoredIn, *c)
	}
	r.IgnoredIn = sortedHead(r.IgnoredIn, func(a, b DirCount) int { return cmp.Compare(a.Path, b.Path) })
	r.IgnoredDirs = sortedHead(r.IgnoredDirs, cmp.Compare[string])
	r.TooDeepDirs = sortedHead(r.TooDeepDirs, cmp.Compare[string])
	r.UnreadableDirs = sortedHead(r.UnreadableDirs, func(a, b Fault) int { return cmp.Compare(a.Path, b.Path) })
	r.Faults = w.start.tree.listFaults()
	w.mu.Lock()
	reason, ended := w.err, w.contextEnded
	w.mu.Unlock()
	left := w.unfinished()
	if len(left) > 0 {
		r.Partial = true
		if !w.opts.AnyOrder {
			r.Cursor = encodeCursor(left)
		}
	}
	if errors.Is(reason, fs.SkipAll) || len(left) == 0 && ended {
		return r, nil
	}
	return r, reason
}

// maxNoteNames bounds the ignore files that UnreadNote names.
const maxNoteNames = 3

// UnreadNote returns a note that names the ignore files in faults, which were
// not read, so that their rules are not applied. It returns "" if faults is
// empty. shown formats a path below the start.
func UnreadNote(faults []Fault, shown func(path string) string) string {
	paths := make([]string, 0, len(faults))
	for _, f := range faults {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	var names []string
	for _, path := range paths[:min(len(paths), maxNoteNames)] {
		if filepath.IsAbs(path) {
			names = append(names, pathname.Escape(path))
		} else {
			names = append(names, shown(path))
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(paths) > len(names):
		names = append(names, "…")
	}
	return "ignore rules not read: " + strings.Join(names, ", ")
}

// sortedHead sorts a list and returns its first maxListed elements.
func sortedHead[T any](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return list[:min(len(list), maxListed)]
}
