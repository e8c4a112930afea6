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

// maxWorkers bounds the workers of a search. Disks and the kernel do not gain
// from more.
const maxWorkers = 8

// maxIgnored bounds the ignored files and directories that are remembered for a
// later search in them.
const maxIgnored = 1000

// matchingFile is a file with matches.
type matchingFile struct {
	path     string // relative to the start of the search, with slashes; "" for the start itself
	mtime    int64  // nanoseconds; 0 when sorted by path
	count    int    // number of matches, at least 1; exact except in mode files_with_matches
	keptText []byte // the searched content, if the index kept it; nil: read the file again
	starts   []int  // with keptText: byte positions of the first matches, as far as known

	encoding textfile.Encoding // a guess; "": none
}

// compare orders matching files: newest first, then by path. The order is
// total, so that the pages of a search neither overlap nor leave gaps.
func (m matchingFile) compare(other matchingFile) int {
	if c := cmp.Compare(other.mtime, m.mtime); c != 0 {
		return c
	}
	return strings.Compare(m.path, other.path)
}

// searchResult holds the findings of a search of all files.
type searchResult struct {
	tally
	page    []matchingFile // the files of the requested page and of those before it, in order
	abs     string         // absolute path of the start
	isFile  bool           // the start is a file
	report  walk.Report
	ignored []string   // ignored files to search for more matches
	used    []bool     // for each glob of include, whether it matched a file
	unknown [][]string // files that are not in the index, as matchingFile.path
	partial bool       // the search stopped at its deadline
	elapsed time.Duration
}

// searcher is the state of one worker of a search.
type searcher struct {
	*query
	tally
	ctx          context.Context
	matcher      *search.Matcher        // stops at the end of ctx
	top          topk.Top[matchingFile] // the first matching files
	buf          []byte                 // from the pool
	head         [headSize]byte         // beginning of a large file
	rereadMasked bool                   // the file read again has masked values
	ignored      []string               // ignored files, as matchingFile.path
	used         []bool                 // which globs of include matched a file
	filesDone    *atomic.Int64          // files searched by all workers

	dirLookup         *index.DirLookup    // asks the index before a file is read; nil: no index
	memo              *walk.Memo          // of the directory that dirLookup is at
	keptText          []byte              // the content that the index kept of the file; nil: none
	keptStat          sandbox.Stat        // with keptText
	startsBuf         [defaultPerFile]int // memory of starts
	starts            []int               // positions of the first matches of the last text counted; nil: unknown
	recordsUnknown    bool                // record files that the index does not know
	unknown           []string            // these files, as matchingFile.path
	limit             *workLimit          // of a near search; nil: unlimited
	needsASCIILiteral bool                // the matcher sets sawInvalid
	sawInvalid        bool                // a line that could match is not UTF-8
	_                 [64]byte            // keeps workers on separate cache lines
}

// searchTree searches all files below q.dir, or the file q.dir. At the deadline
// it returns the results so far with the context's error. If the call is
// cancelled, it returns only the error.
func (q *query) searchTree(ctx context.Context) (*searchResult, error) {
	workers := q.workerCount()
	node, err := walk.Start(q.fs, q.dir, walk.Options{
		Hidden: q.args.Hidden, NoIgnore: q.args.NoIgnore, ShowIgnored: true, Workers: workers,
		Cache: q.cache.walkCache(), AnyOrder: true,
	})
	if toolerr.Is(err, toolerr.NotADirectory) {
		return q.searchOnlyFile(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer node.Close()
	q.abs = node.Dir().Path()
	if q.perFile == 0 {
		q.perFile = defaultPerFile
	}
	f := &searchResult{abs: q.abs, used: make([]bool, len(q.filter.include))}
	searchers := q.newSearchers(ctx, workers)
	for i := range searchers {
		searchers[i].recordsUnknown = q.cache != nil
	}
	f.report, err = walk.Walk(ctx, node, func(worker int, e *walk.Entry) error {
		return searchers[worker].visit(e)
	})
	tops := make([]topk.Top[matchingFile], workers)
	for i := range searchers {
		w := &searchers[i]
		w.releaseMemory()
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
	f.ignored = firstPaths(f.ignored)
	f.page = topk.Merge(tops, 0)
	f.partial = err != nil || f.report.Partial
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return f, err
}

// firstPaths returns the first maxIgnored paths in order, so that the result
// does not depend on which worker found them.
func firstPaths(paths []string) []string {
	slices.Sort(paths)
	return paths[:min(len(paths), maxIgnored)]
}

// releaseMemory returns the searcher's memory to the pools.
func (w *searcher) releaseMemory() {
	w.buffers.put(w.buf)
	w.buf = nil
	if w.dirLookup != nil {
		w.dirLookup.Close()
		w.dirLookup = nil
	}
}

// workerCount returns the number of workers of a search.
func (q *query) workerCount() int { return min(runtime.GOMAXPROCS(0), maxWorkers) }

// boundedMatcher returns the matcher with a stop at the end of ctx.
func (q *query) boundedMatcher(ctx context.Context) *search.Matcher {
	return q.matcher.StopWhen(func() bool { return ctx.Err() != nil })
}

// newSearchers returns a searcher for each worker. The caller releases their
// memory.
func (q *query) newSearchers(ctx context.Context, workers int) []searcher {
	all := make([]searcher, workers)
	done := new(atomic.Int64)
	consult := q.cache.hasFiles()
	var required *index.Query
	if consult {
		required = index.NewQuery(q.matcher.RequiredLiterals())
	}
	for i := range all {
		all[i] = searcher{query: q, ctx: ctx, matcher: q.boundedMatcher(ctx), buf: q.buffers.get(), filesDone: done, used: make([]bool, len(q.filter.include))}
		if consult {
			all[i].dirLookup = q.cache.index.NewDirLookup(required)
		}
		if all[i].needsASCIILiteral = q.matcher.NeedsASCIILiteral(); all[i].needsASCIILiteral {
			all[i].matcher = all[i].matcher.ReportingInvalidUTF8(&all[i].sawInvalid)
		}
		all[i].top = topk.New(q.args.Offset, q.args.HeadLimit, matchingFile.compare)
	}
	return all
}

// searchOnlyFile searches the single file that path names, whatever its size. Its results
// are as for searchTree.
func (q *query) searchOnlyFile(ctx context.Context) (*searchResult, error) {
	file, err := q.fs.Open(q.dir)
	if err != nil {
		return nil, err
	}
	file.Close()
	q.abs, q.anySize = file.Path, true
	if q.perFile == 0 {
		q.perFile = math.MaxInt
	}
	w := &q.newSearchers(ctx, 1)[0]
	defer w.releaseMemory()
	w.openAndSearch(q.dir, "")
	f := &searchResult{abs: q.abs, isFile: true, tally: w.tally, page: topk.Merge([]topk.Top[matchingFile]{w.top}, 0), partial: ctx.Err() != nil}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return f, ctx.Err()
}

// openAndSearch searches the file called name, without the index. Results show
// it as path.
func (w *searcher) openAndSearch(name, path string) {
	file, err := w.fs.Open(name)
	if err != nil {
		w.countSkipped(path, outcomeOf(err))
		return
	}
	defer file.Close()
	largest := int64(maxNearFile)
	if w.anySize {
		largest = noMatchLimit.bytes
	}
	if w.limit.takeFile(file.Stat.Size, largest) {
		w.searchLarge(path, file.File, file.Stat, file.Masked, true)
	}
}

// skipsIgnoredDir reports whether an ignored directory need not be searched.
func (q *query) skipsIgnoredDir(dir string) bool {
	return !q.filter.shouldEnter(dir) || q.fs.Denied(filepath.Join(q.abs, filepath.FromSlash(dir)))
}

// visit searches an entry, unless it is filtered, denied or not a regular file.
// It returns fs.SkipDir or fs.SkipAll to the walk, or the context's error.
func (w *searcher) visit(e *walk.Entry) error {
	switch {
	case !w.limit.takeEntry():
		return fs.SkipAll
	case e.Ignored:
		if !e.IsDir() && e.IsRegular() && w.filter.wants(e.Path, e.Name, nil) {
			if w.ignored = append(w.ignored, strings.Clone(e.Path)); len(w.ignored) == 2*maxIgnored {
				w.ignored = firstPaths(w.ignored)
			}
		}
		return nil
	case e.IsDir():
		switch {
		case !w.filter.shouldEnter(e.Path):
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
		if st, err := e.Lstat(); err == nil && !w.limit.takeFile(st.Size, maxNearFile) {
			return nil
		}
	}
	return w.searchEntry(e)
}
