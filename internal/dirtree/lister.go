package dirtree

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// Number of entries that a directory lists at its turn. The numbers are part of
// the order of the listing: changing them moves entries between pages.
const (
	// entriesOfFirstTurn and entriesOfLaterTurns are the numbers of entries
	// that a directory lists at its turn: the top directory at its first turn,
	// and in all other turns. They are part of the order of the listing:
	// changing them moves entries between pages.
	entriesOfFirstTurn  = 200 // of the top directory
	entriesOfLaterTurns = 10
)

// maxUnreadNames is the number of unreadable directories whose names a result
// lists.
const maxUnreadNames = 3

// entry is one entry of a directory.
type entry struct {
	name    string
	typ     fs.FileMode
	ignored bool // by an ignore file
	secret  bool // must not be read
	sub     *dir // for a directory to be listed; nil until its entry has had its turn
}

// isExpanded reports whether the listing descends into the entry, which is at depth.
// Directories at maxDepth, ignored and secret directories are not expanded.
func (e *entry) isExpanded(depth, maxDepth int) bool {
	return e.typ.IsDir() && !e.ignored && !e.secret && depth < maxDepth
}

// dir is a directory of the listing: its entries, and its part of the page.
type dir struct {
	parent *dir
	index  int    // in the parent's entries
	name   string // "" for the top
	path   string // relative to the top, slashes; "" for the top
	depth  int    // 0 for the top

	node         *walk.Node // nil while closed
	loaded       bool
	err          error // why it could not be read
	entries      []entry
	nextIndex    int // the first entry that has not had its turn
	ignoredFiles int // number of ignored files not shown

	// The part of the directory on this page: rows[i] belongs to
	// entries[rowsFrom+i].
	rowsFrom    int
	rows        []*shownRow
	earlierDirs []*dir // directories of earlier pages with rows on this page
	onPage      bool   // the directory is on this page, as a row or as the parent of rows
}

// lister creates one listing: it reads the tree breadth-first and collects the
// rows of the page.
type lister struct {
	ctx      context.Context
	box      *sandbox.FS
	opts     Options
	globs    []*glob.Glob
	shownTop string // the top directory as shown in results

	result         *Result
	openDirs       []*dir // in addition to the top; the directory opened first comes first
	queue          []*dir // directories that wait for a turn
	listedCount    int    // number of entries that have had their turn
	remainingBytes int    // bytes left on the page
	pageFull       bool
	pageRows       []pageRow // the page's rows, in the order of the listing
	started        time.Time
	detailDeadline time.Time // for line counts and counts of ignored files
}

// listDir returns the listing of the directory name without the entries that
// match one of globs.
func listDir(ctx context.Context, box *sandbox.FS, name string, opts Options, globs []*glob.Glob) (*Result, error) {
	node, err := walk.Start(box, name, walk.Options{Hidden: true, NoIgnore: opts.NoIgnore})
	if err != nil {
		return nil, err
	}
	defer node.Close()
	top := &dir{node: node}
	now := time.Now()
	l := &lister{
		ctx: ctx, box: box, opts: opts, globs: globs, shownTop: box.Display(node.Dir().Path()),
		queue: []*dir{top}, remainingBytes: opts.Budget - headerSize, started: now, detailDeadline: now.Add(maxDetailTime),
	}
	l.result = &Result{
		Path: l.shownTop, IsDir: true, Depth: opts.Depth, Offset: opts.Offset,
		budget: opts.Budget, long: opts.Long, root: top, note: opts.Note,
	}
	status := startGitStatus(ctx, box, node.Dir().Path(), opts.GitWait)
	defer status.stop()
	defer l.closeAll()
	if err := l.run(); err != nil {
		return nil, err
	}
	if top.err != nil {
		return nil, top.err
	}
	l.result.unreadIgnoreNote = walk.UnreadNote(node.Faults(), l.pathOf)
	l.result.setGitStatus(status.wait(), l.pageRows)
	l.fitPage()
	l.result.fillRows()
	return l.result, nil
}

// run gives the directories their turns until all entries are listed. When the
// page is full it continues, to count the entries, until maxListTime has
// passed. It sets Total and TotalExact of the result.
func (l *lister) run() error {
	for len(l.queue) > 0 {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if l.pageFull && time.Since(l.started) > maxListTime {
			l.result.Total = l.listedCount
			for _, d := range l.queue {
				l.result.Total += len(d.entries) - d.nextIndex
			}
			return nil
		}
		d := l.queue[0]
		l.queue = l.queue[1:]
		l.ensureLoaded(d)
		if err := l.listNextEntries(d); err != nil {
			return err
		}
	}
	if err := l.ctx.Err(); err != nil {
		return err
	}
	l.result.Total, l.result.TotalExact = l.listedCount, true
	return nil
}

// listNextEntries gives a directory its turn: it lists the next entries, adds
// those of the page to it, and queues the subdirectories found. A directory
// with further entries is queued again.
func (l *lister) listNextEntries(d *dir) error {
	share := entriesOfLaterTurns
	if d.depth == 0 && d.nextIndex == 0 {
		share = entriesOfFirstTurn
	}
	from := d.nextIndex
	to := min(from+share, len(d.entries))
	d.nextIndex = to
	for i := from; i < to; i++ {
		if e := &d.entries[i]; e.isExpanded(d.depth+1, l.opts.Depth) {
			e.sub = &dir{parent: d, index: i, name: e.name, path: joinRel(d.path, e.name), depth: d.depth + 1}
			l.queue = append(l.queue, e.sub)
		}
	}
	if to < len(d.entries) {
		l.queue = append(l.queue, d)
	}
	first := l.listedCount
	l.listedCount += to - from
	return l.addToPage(d, from, to, first)
}

// addToPage adds those of d.entries[from:to] that belong on the page. first is
// the position of d.entries[from] in the whole listing. It sets pageFull when
// the limit of rows or of bytes is reached.
func (l *lister) addToPage(d *dir, from, to, first int) error {
	if l.pageFull {
		return nil
	}
	if skip := l.opts.Offset - first; skip > 0 {
		from += skip
		first += skip
	}
	if from >= to {
		return nil
	}
	if end := l.opts.Offset + l.opts.Limit; first+to-from >= end {
		to = from + end - first
	}
	rows, err := l.readRows(d, from, to)
	if err != nil {
		return err
	}
	for i, row := range rows {
		l.remainingBytes -= row.lineLength(d.depth, l.opts.Long)
		if l.remainingBytes < 0 && len(l.pageRows) > 0 {
			l.pageFull = true
			return nil
		}
		l.pageRows = append(l.pageRows, pageRow{d, from + i, row})
	}
	l.pageFull = first+to-from >= l.opts.Offset+l.opts.Limit
	return nil
}

// ensureLoaded reads the entries of a directory at the first call. An error is
// stored in d.err and counted in the result.
func (l *lister) ensureLoaded(d *dir) {
	if d.loaded {
		return
	}
	d.loaded = true
	if d.err = l.ensureOpen(d); d.err == nil {
		d.err = l.readEntries(d)
	}
	if d.err != nil {
		d.entries = nil
		l.result.Unreadable++
		if len(l.result.Unread) < maxUnreadNames {
			l.result.Unread = append(l.result.Unread, l.pathOf(d.path))
		}
	}
}

// readEntries sets the entries of an open directory, sorted, and counts those
// that are not listed.
func (l *lister) readEntries(d *dir) error {
	abs := d.node.Dir().Path()
	err := d.node.Each(func(e *walk.Entry) error {
		if len(d.entries)%1024 == 0 && l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		switch {
		case l.opts.SkipHidden && e.Hidden:
			l.result.Hidden++
		case l.isExcluded(e):
			l.result.Excluded++
		case e.Ignored && !e.IsDir():
			d.ignoredFiles++
			l.result.Ignored++
		default:
			d.entries = append(d.entries, entry{
				name: e.Name, typ: e.Type, ignored: e.Ignored,
				// details finds the other secrets among the shown entries
				secret: e.IsDir() && l.box.Denied(filepath.Join(abs, e.Name)),
			})
		}
		return nil
	})
	slices.SortFunc(d.entries, compareEntries)
	return err
}

// compareEntries compares two entries for sorting: directories come before
// other entries, and each kind is sorted by compareNatural.
func compareEntries(a, b entry) int {
	if a.typ.IsDir() != b.typ.IsDir() {
		if a.typ.IsDir() {
			return -1
		}
		return 1
	}
	return compareNatural(a.name, b.name)
}

// isExcluded reports whether a glob of Options.Ignore matches the entry.
func (l *lister) isExcluded(e *walk.Entry) bool {
	for _, g := range l.globs {
		if g.MatchEntry(e.Path, e.IsDir()) {
			return true
		}
	}
	return false
}

// pathOf returns the shown form of rel, a path relative to the listed
// directory.
func (l *lister) pathOf(rel string) string { return joinShown(l.shownTop, pathname.Escape(rel)) }

// joinShown joins the path of the listed directory, as shown, and a path below
// it. It omits a leading "./".
func joinShown(dir, rel string) string {
	switch {
	case rel == "":
		return dir
	case dir == ".":
		return rel
	}
	return dir + "/" + rel
}
