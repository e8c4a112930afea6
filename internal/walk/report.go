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
	ignoredDirs []string
	unread      int
	unreadList  []Fault
	tooDeep     int
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

// report returns the report and error of a walk, after all workers have returned. It
// closes the directories that are still open. After fs.SkipAll the error is nil, and also
// if the context ended only when everything had been visited.
func (w *walker) report(workers []*worker) (Report, error) {
	var r Report
	for _, t := range workers {
		r.Files += t.files
		r.Dirs += t.dirs
		r.Ignored += t.ignored
		r.Unreadable += t.unread
		r.TooDeep += t.tooDeep
		r.IgnoredDirs = append(r.IgnoredDirs, t.ignoredDirs...)
		r.UnreadableDirs = append(r.UnreadableDirs, t.unreadList...)
	}
	r.IgnoredDirs = sortedHead(r.IgnoredDirs, cmp.Compare[string])
	r.UnreadableDirs = sortedHead(r.UnreadableDirs, func(a, b Fault) int { return cmp.Compare(a.Path, b.Path) })
	r.Faults = w.start.tree.listFaults()
	w.mu.Lock()
	reason, ended := w.err, w.contextEnded
	w.mu.Unlock()
	r.Partial = w.closeRemaining()
	if errors.Is(reason, fs.SkipAll) || !r.Partial && ended {
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
