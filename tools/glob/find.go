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

// found is the result of a search.
type found struct {
	page      []match
	total     int
	shown     string // starting directory, as shown in results
	abs       string // starting directory, absolute
	report    walk.Report
	ignored   int
	ignoredUp bool // the real number of ignored paths is larger
	partial   bool
	elapsed   time.Duration
}

// finder is the state of one worker.
type finder struct {
	top   topk.Top[match]
	total int
	_     [64]byte // workers do not share a cache line
}

// find walks the tree and collects the matches. When the deadline passes, it
// returns the matches found so far together with the context's error.
func (q *query) find(ctx context.Context) (*found, error) {
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	node, err := walk.Start(q.fs, q.dir, walk.Options{
		Hidden: q.args.Hidden, NoIgnore: q.args.NoIgnore, Workers: workers, Cache: q.dirs,
		Prune: q.prune,
	})
	if err != nil {
		return nil, q.explain(err)
	}
	defer node.Close()
	f := &found{abs: node.Dir().Path(), shown: q.inDir}
	if f.shown == "" {
		f.shown = q.fs.Display(f.abs)
	}
	q.abs = f.abs
	finders := make([]finder, workers)
	for i := range finders {
		finders[i].top = topk.New(q.args.Offset, q.args.Limit, match.before)
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

// prune reports whether the walk should not enter a directory.
func (q *query) prune(dir string) bool {
	return !q.glob.Enter(dir) || q.excluded(dir, true) || q.fs.Denied(filepath.Join(q.abs, filepath.FromSlash(dir)))
}

func (q *query) matches(e *walk.Entry) bool {
	if e.IsDir() && q.args.Type == "f" || e.IsRegular() && q.args.Type == "d" {
		return false
	}
	return q.glob.MatchEntry(e.Path, q.mayBeDir(e)) && !q.excluded(e.Path, e.IsDir())
}

// mayBeDir reports whether an entry counts as a directory for matching. If
// directories are searched, symbolic links count too; collect checks their
// targets.
func (q *query) mayBeDir(e *walk.Entry) bool {
	return e.IsDir() || q.args.Type == "d" && e.Type&fs.ModeSymlink != 0
}

// collect adds an entry whose path matches, if its type fits.
func (q *query) collect(w *finder, e *walk.Entry) {
	m := match{path: e.Path, isDir: e.IsDir()}
	if !e.IsDir() && !e.IsRegular() && q.args.Type != "any" {
		st, fits := q.target(e)
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
	w.total++
	w.top.Add(m)
}

// target returns the state of a symbolic link's target, and whether its type is
// wanted. The result is false for other special files.
func (q *query) target(e *walk.Entry) (sandbox.Stat, bool) {
	if e.Type&fs.ModeSymlink == 0 {
		return sandbox.Stat{}, false
	}
	st, err := q.fs.Quiet().Stat(filepath.Join(q.abs, filepath.FromSlash(e.Path)))
	return st, err == nil && (q.args.Type == "f" && st.Mode.IsRegular() || q.args.Type == "d" && st.Mode.IsDir())
}

// fits reports whether an entry has the wanted type.
func (q *query) fits(e *walk.Entry) bool {
	switch {
	case q.args.Type == "any":
		return true
	case e.IsDir():
		return q.args.Type == "d"
	case e.IsRegular():
		return q.args.Type == "f"
	}
	_, fits := q.target(e)
	return fits
}

// countIgnored counts skipped ignored paths. As far as time allows, this
// includes the entries of ignored directories.
func (q *query) countIgnored(ctx context.Context, start *walk.Node, f *found) {
	report := &f.report
	ctx, stop := context.WithTimeout(ctx, ignoredTime)
	defer stop()
	f.ignored = report.Ignored - len(report.IgnoredDirs)
	f.ignoredUp = len(report.IgnoredDirs) >= maxIgnored // a walk lists no more than these
	for i, dir := range report.IgnoredDirs {
		if ctx.Err() != nil {
			f.ignored += len(report.IgnoredDirs) - i
			f.ignoredUp = true
			return
		}
		if q.prune(dir) {
			continue
		}
		n, exact := countBelow(ctx, start, dir)
		f.ignored += n
		f.ignoredUp = f.ignoredUp || !exact
	}
}

// countBelow counts the entries of a directory below start. The result is false
// if the number is only a lower bound.
func countBelow(ctx context.Context, start *walk.Node, dir string) (int, bool) {
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
	return node.Count(ctx, name, 0)
}
