package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/topk"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/grep/index"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// maxWorkers bounds the workers; disks and the kernel do not gain from more.
const maxWorkers = 8

// maxIgnored bounds the ignored files and directories that are remembered for a
// later look into them.
const maxIgnored = 1000

// match is a file with matches.
type match struct {
	path   string // relative to the start of the search; "" for the start itself
	mtime  int64  // nanoseconds; 0 when sorted by path
	count  int    // number of matches, at least 1; exact except in mode files_with_matches
	kept   []byte // the searched content, if the index kept it; nil: read it again
	starts []int  // with kept: positions of the first matches, as far as known

	encoding textfile.Encoding // a guess; "": none
}

// before compares two matches for sorting: newest first, then by path. The
// order is total, so that the pages of a search neither overlap nor leave gaps.
func (m match) before(other match) int {
	if c := cmp.Compare(other.mtime, m.mtime); c != 0 {
		return c
	}
	return strings.Compare(m.path, other.path)
}

// found is the result of a search.
type found struct {
	tally
	page    []match // the files with the requested page, in order
	abs     string  // the start
	isFile  bool    // the start is a file
	report  walk.Report
	ignored []string   // ignored files
	used    []bool     // which of the globs matched a file
	unknown [][]string // files missing in the index, as match.path
	partial bool
	elapsed time.Duration
}

// searcher is the state of one worker.
type searcher struct {
	*query
	tally
	ctx     context.Context
	matcher *search.Matcher // bounded by ctx
	top     topk.Top[match]
	buf     []byte
	head    [headSize]byte
	masked  bool // the file read again is masked
	ignored []string
	used    []bool
	done    *atomic.Int64 // files searched by all workers

	dirLookup *index.DirLookup // asks the index before a file is read; nil: no index
	memo      *walk.Memo       // of the directory that dirLookup is at
	kept      []byte           // the content that the index kept of the file; nil: none
	keptStat  sandbox.Stat     // with kept
	places    [defaultPerFile]int
	starts    []int // in places: positions of the first matches of the last text counted
	learning  bool  // record files that the index does not know
	unknown   []string
	limit     *workLimit // of a search for hints; nil: unlimited
	byLine    bool       // the matcher sets foreign
	foreign   bool       // a line that could match is not UTF-8
	_         [64]byte   // keeps workers on separate cache lines
}

// find searches all files. At the deadline it returns the results so far with
// the context's error.
func (q *query) find(ctx context.Context) (*found, error) {
	workers := q.workers()
	node, err := walk.Start(q.fs, q.dir, walk.Options{
		Hidden: q.args.Hidden, NoIgnore: q.args.NoIgnore, ShowIgnored: true, Workers: workers,
		Cache: q.cache.walkCache(), AnyOrder: true,
	})
	if toolerr.Is(err, toolerr.NotADirectory) {
		return q.findInFile(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer node.Close()
	q.abs = node.Dir().Path()
	if q.perFile == 0 {
		q.perFile = defaultPerFile
	}
	f := &found{abs: q.abs, used: make([]bool, len(q.filter.include))}
	searchers := q.searchers(ctx, workers)
	for i := range searchers {
		searchers[i].learning = q.cache != nil
	}
	f.report, err = walk.Walk(ctx, node, func(worker int, e *walk.Entry) error {
		return searchers[worker].visit(e)
	})
	tops := make([]topk.Top[match], workers)
	for i := range searchers {
		w := &searchers[i]
		w.giveBack()
		f.tally.add(&w.tally)
		f.ignored = append(f.ignored, w.ignored...)
		for i, used := range w.used {
			f.used[i] = f.used[i] || used
		}
		tops[i] = w.top
		if len(w.unknown) > 0 {
			f.unknown = append(f.unknown, w.unknown)
		}
	}
	f.ignored = firstIgnored(f.ignored)
	f.page = topk.Merge(tops, 0)
	f.partial = err != nil || f.report.Partial
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return f, err
}

// firstIgnored returns the first maxIgnored paths in order, whichever worker
// found them.
func firstIgnored(paths []string) []string {
	slices.Sort(paths)
	return paths[:min(len(paths), maxIgnored)]
}

// giveBack returns the searcher's memory to the pools.
func (w *searcher) giveBack() {
	w.buffers.giveBack(w.buf)
	w.buf = nil
	if w.dirLookup != nil {
		w.dirLookup.Close()
		w.dirLookup = nil
	}
}

func (q *query) workers() int { return min(runtime.GOMAXPROCS(0), maxWorkers) }

// bounded returns the matcher with a stop at the end of ctx.
func (q *query) bounded(ctx context.Context) *search.Matcher {
	return q.matcher.StopWhen(func() bool { return ctx.Err() != nil })
}

func (q *query) searchers(ctx context.Context, workers int) []searcher {
	all := make([]searcher, workers)
	done := new(atomic.Int64)
	consult := q.cache.known()
	var required *index.Query
	if consult {
		required = index.NewQuery(q.matcher.RequiredLiterals())
	}
	for i := range all {
		all[i] = searcher{query: q, ctx: ctx, matcher: q.bounded(ctx), buf: q.buffers.take(), done: done, used: make([]bool, len(q.filter.include))}
		if consult {
			all[i].dirLookup = q.cache.index.NewDirLookup(required)
		}
		if all[i].byLine = q.matcher.NeedsASCIILiteral(); all[i].byLine {
			all[i].matcher = all[i].matcher.NotingInvalidUTF8(&all[i].foreign)
		}
		all[i].top = topk.New(q.args.Offset, q.args.HeadLimit, match.before)
	}
	return all
}

// findInFile searches the single file that path names.
func (q *query) findInFile(ctx context.Context) (*found, error) {
	file, err := q.fs.Open(q.dir)
	if err != nil {
		return nil, err
	}
	file.Close()
	q.abs, q.anySize = file.Path, true
	if q.perFile == 0 {
		q.perFile = math.MaxInt
	}
	w := &q.searchers(ctx, 1)[0]
	defer w.giveBack()
	w.searchNamed(q.dir, "")
	f := &found{abs: q.abs, isFile: true, tally: w.tally, page: topk.Merge([]topk.Top[match]{w.top}, 0), partial: ctx.Err() != nil}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return f, ctx.Err()
}

// searchNamed searches the file called name; results show it as path.
func (w *searcher) searchNamed(name, path string) {
	file, err := w.fs.Open(name)
	if err != nil {
		w.skip(path, failure(err))
		return
	}
	defer file.Close()
	largest := int64(maxHintFile)
	if w.anySize {
		largest = noMatchLimit.bytes
	}
	if w.limit.file(file.Stat.Size, largest) {
		w.stream(path, file.File, file.Stat, file.Masked, true)
	}
}

// prune reports whether an ignored directory need not be searched.
func (q *query) prune(dir string) bool {
	return !q.filter.enter(dir) || q.fs.Denied(filepath.Join(q.abs, filepath.FromSlash(dir)))
}

// visit searches an entry, unless it is filtered, denied or not a regular file.
func (w *searcher) visit(e *walk.Entry) error {
	switch {
	case !w.limit.entry():
		return fs.SkipAll
	case e.Ignored:
		if !e.IsDir() && e.IsRegular() && w.filter.wants(e.Path, e.Name, nil) {
			if w.ignored = append(w.ignored, strings.Clone(e.Path)); len(w.ignored) == 2*maxIgnored {
				w.ignored = firstIgnored(w.ignored)
			}
		}
		return nil
	case e.IsDir():
		switch {
		case !w.filter.enter(e.Path):
			return fs.SkipDir
		case e.MaybeSecret && w.fs.DeniedIn(e.Dir.Path(), e.Name):
			w.outcomes[secretFile]++
			return fs.SkipDir
		}
		return nil
	case !e.IsRegular():
		if e.Type&os.ModeSymlink == 0 && w.filter.wants(e.Path, e.Name, nil) {
			w.outcomes[special]++
		}
		return nil
	case !w.filter.wants(e.Path, e.Name, w.used):
		w.filtered++
		return nil
	case e.MaybeSecret && w.fs.DeniedIn(e.Dir.Path(), e.Name):
		w.outcomes[secretFile]++
		return nil
	}
	if w.limit != nil {
		if st, err := e.Lstat(); err == nil && !w.limit.file(st.Size, maxHintFile) {
			return nil
		}
	}
	return w.file(e)
}
