package main

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/topk"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// ignoredTime bounds the time spent on counting the entries of ignored
// directories.
const ignoredTime = 50 * time.Millisecond

// maxIgnored is the largest number of ignored directories that a walk lists.
const maxIgnored = 1000

// maxWorkers bounds the workers of a walk; more do not make it faster.
const maxWorkers = 8

// searchResult is the result of a search.
type searchResult struct {
	page           []match // the matches from offset on, at most limit, in order
	total          int     // number of matches
	shownDir       string  // starting directory, as shown in results
	absDir         string  // absolute path of the starting directory
	report         walk.Report
	ignored        int  // number of ignored paths
	ignoredAtLeast bool // the real number of ignored paths is larger
	partial        bool // the search stopped at its deadline
	elapsed        time.Duration
}

// worker is the state of one worker of a search.
type worker struct {
	top   topk.Top[match] // the first matches
	total int             // number of its matches
	_     [64]byte        // workers do not share a cache line
}

// search walks the tree and collects the matches. At the deadline it returns
// the matches found so far together with the context's error.
func (q *query) search(ctx context.Context) (*searchResult, error) {
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	node, err := walk.Start(q.fs, q.dir, walk.Options{
		Hidden: q.args.Hidden, NoIgnore: q.args.NoIgnore, Workers: workers, Cache: q.dirs,
		Prune: q.skipsDir,
	})
	if err != nil {
		return nil, q.explainOpenError(err)
	}
	defer node.Close()
	f := &searchResult{absDir: node.Dir().Path(), shownDir: q.shownDir}
	if f.shownDir == "" {
		f.shownDir = q.fs.Display(f.absDir)
	}
	q.abs = f.absDir
	finders := make([]worker, workers)
	for i := range finders {
		finders[i].top = topk.New(q.args.Offset, q.args.Limit, match.compare)
	}
	f.report, err = walk.Walk(ctx, node, func(worker int, e *walk.Entry) error {
		w := &finders[worker]
		if q.matches(e) {
			q.collect(w, e)
		}
		return nil
	})
	tops := make([]topk.Top[match], workers)
	for i := range finders {
		f.total += finders[i].total
		tops[i] = finders[i].top
	}
	f.page = topk.Merge(tops, q.args.Offset)
	f.partial = err != nil || f.report.Partial
	if err == nil {
		q.countIgnored(ctx, node, f)
	}
	return f, err
}

// skipsDir reports whether the walk should not enter a directory.
func (q *query) skipsDir(dir string) bool {
	return !q.glob.MayMatchBelow(dir) || q.isExcluded(dir, true) || q.fs.Denied(filepath.Join(q.abs, filepath.FromSlash(dir)))
}

// matches reports whether an entry's path matches. The type of a link's target
// is not checked.
func (q *query) matches(e *walk.Entry) bool {
	if e.IsDir() && q.args.Type == "f" || e.IsRegular() && q.args.Type == "d" {
		return false
	}
	return q.glob.MatchEntry(e.Path, q.mayBeDir(e)) && !q.isExcluded(e.Path, e.IsDir())
}

// mayBeDir reports whether an entry counts as a directory for matching. If
// directories are searched, symbolic links count, too; collect checks their
// targets.
func (q *query) mayBeDir(e *walk.Entry) bool {
	return e.IsDir() || q.args.Type == "d" && e.Type&fs.ModeSymlink != 0
}

// collect adds an entry whose path matches to the worker's matches, if its type
// fits.
func (q *query) collect(to *worker, e *walk.Entry) {
	m := match{path: e.Path, isDir: e.IsDir()}
	if !e.IsDir() && !e.IsRegular() && q.args.Type != "any" {
		st, fits := q.linkTarget(e)
		if !fits {
			return
		}
		m.mtime = st.ModNano()
	} else if q.args.Sort == "mtime" {
		if st, err := e.Lstat(); err == nil {
			m.mtime = st.ModNano()
		}
	}
	if q.args.Sort == "path" {
		m.mtime = 0
	}
	m.secret = e.MaybeSecret && q.fs.DeniedIn(e.Dir.Path(), e.Name)
	to.total++
	to.top.Add(m)
}

// linkTarget returns the state of a symbolic link's target, and whether its
// type is wanted. wanted is false for other special files.
func (q *query) linkTarget(e *walk.Entry) (target sandbox.Stat, wanted bool) {
	if e.Type&fs.ModeSymlink == 0 {
		return sandbox.Stat{}, false
	}
	st, err := q.fs.WithNearbySuggestions().Stat(filepath.Join(q.abs, filepath.FromSlash(e.Path)))
	return st, err == nil && (q.args.Type == "f" && st.Mode.IsRegular() || q.args.Type == "d" && st.Mode.IsDir())
}

// hasWantedType reports whether an entry, or the target of a link, has the
// wanted type.
func (q *query) hasWantedType(e *walk.Entry) bool {
	switch {
	case q.args.Type == "any":
		return true
	case e.IsDir():
		return q.args.Type == "d"
	case e.IsRegular():
		return q.args.Type == "f"
	}
	_, fits := q.linkTarget(e)
	return fits
}

// countIgnored sets the number of ignored paths. As far as time allows, this
// includes the entries of ignored directories.
func (q *query) countIgnored(ctx context.Context, start *walk.Node, f *searchResult) {
	report := &f.report
	ctx, stop := context.WithTimeout(ctx, ignoredTime)
	defer stop()
	f.ignored = report.Ignored - len(report.IgnoredDirs)
	f.ignoredAtLeast = len(report.IgnoredDirs) >= maxIgnored // a walk lists no more than these
	for i, dir := range report.IgnoredDirs {
		if ctx.Err() != nil {
			f.ignored += len(report.IgnoredDirs) - i
			f.ignoredAtLeast = true
			return
		}
		if q.skipsDir(dir) {
			continue
		}
		n, exact := countBelow(ctx, start, dir)
		f.ignored += n
		f.ignoredAtLeast = f.ignoredAtLeast || !exact
	}
}

// countBelow counts the entries of a directory below start. exact is false if
// the number is only a lower bound.
func countBelow(ctx context.Context, start *walk.Node, dir string) (n int, exact bool) {
	above, name := path.Split(dir)
	node := start
	for part := range strings.SplitSeq(strings.TrimSuffix(above, "/"), "/") {
		if part == "" {
			break
		}
		next, err := node.Enter(part)
		if node != start {
			node.Close()
		}
		if err != nil {
			return 0, false
		}
		node = next
	}
	if node != start {
		defer node.Close()
	}
	return node.CountFilesIn(ctx, name, 0)
}
