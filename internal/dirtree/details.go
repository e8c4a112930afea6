package dirtree

import (
	"context"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxIgnoredFiles bounds the number of files counted in one ignored directory.
const maxIgnoredFiles = 1_000_000

// shownRow is a Row with what is needed to print it as a line.
type shownRow struct {
	Row
	rel          string // path relative to the listed directory
	label        string // the name as shown in the tree
	sub          *dir   // set for a directory that is listed
	isListedFile bool   // the listing consists of this file
}

// readRows returns the rows of d.entries[from:to], with their details. It reads
// several entries at a time and, if necessary, opens the directory. It returns
// an error if the directory cannot be opened, or if ctx ends.
func (l *lister) readRows(d *dir, from, to int) ([]*shownRow, error) {
	if err := l.ensureOpen(d); err != nil {
		return nil, err
	}
	rows := make([]*shownRow, to-from)
	var next atomic.Int64
	var cut atomic.Bool
	work := func() {
		look := rowReader{dir: d.node.Dir(), long: l.opts.Long, deadline: l.detailDeadline}
		for l.ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(rows) {
				break
			}
			e := &d.entries[from+i]
			if !e.typ.IsDir() {
				e.secret = l.box.Denied(filepath.Join(look.dir.Path(), e.name))
			}
			row := look.readRow(e)
			row.rel, row.Depth, row.sub = joinRel(d.path, e.name), d.depth+1, e.sub
			row.Path = l.pathOf(row.rel)
			rows[i] = row
		}
		if look.countsOmitted {
			cut.Store(true)
		}
	}
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 4, 1+len(rows)/8) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	if err := l.ctx.Err(); err != nil {
		return nil, err
	}
	for i, row := range rows { // one row at a time: counting itself uses several workers
		if row.Ignored && d.entries[from+i].typ.IsDir() {
			l.countIgnoredFiles(d.node, d.entries[from+i].name, row)
		}
	}
	l.result.LinesCut = l.result.LinesCut || cut.Load()
	return rows, l.ctx.Err()
}

// joinRel returns dir/name, where dir is a path relative to the listed
// directory, "" for that directory itself.
func joinRel(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// countIgnoredFiles sets row.Files to the number of files in the ignored
// directory name of node. Counting stops at the deadline and at
// maxIgnoredFiles; row.AtLeast then is true. If the deadline has passed
// already, or the directory is secret, the row is left unchanged.
func (l *lister) countIgnoredFiles(node *walk.Node, name string, row *shownRow) {
	ctx, stop := context.WithDeadline(l.ctx, l.detailDeadline)
	defer stop()
	if row.Secret || ctx.Err() != nil {
		return
	}
	n, exact := node.CountFilesIn(ctx, name, maxIgnoredFiles)
	row.Files, row.AtLeast = &n, !exact
}

// rowReader reads the details of the entries of one directory that their rows
// show. It is used by one goroutine.
type rowReader struct {
	dir           *sandbox.Dir
	long          bool
	deadline      time.Time
	buffer        []byte
	countsOmitted bool
}

// readRow returns the row of an entry. If the entry cannot be examined, the row
// has only name, type, Ignored, Secret and the error.
func (k *rowReader) readRow(e *entry) *shownRow {
	row := &shownRow{label: pathname.Escape(e.name)}
	row.Type, row.Ignored, row.Secret = typeName(e.typ), e.ignored, e.secret
	st, err := k.dir.Lstat(e.name)
	if err != nil {
		row.Error = errorWithoutPath(err)
		return row
	}
	row.Type = typeName(st.Mode)
	if k.long {
		row.Mode, row.Modified = st.Mode.String(), st.ModTime.Format(time.RFC3339)
	}
	switch {
	case st.Mode.IsDir():
		row.label += "/"
	case st.Mode&fs.ModeSymlink != 0:
		k.addLinkTarget(e.name, row)
	case st.Mode.IsRegular():
		row.Size = &st.Size
		if row.Exec = st.Mode&0o111 != 0; row.Exec {
			row.label += "*"
		}
		if !e.secret && st.Size <= maxCountedSize {
			k.addLineCount(e.name, st.Size, row)
		}
	}
	return row
}

// addLinkTarget adds the target of the link name to the row, or the error.
func (k *rowReader) addLinkTarget(name string, row *shownRow) {
	target, err := k.dir.Readlink(name)
	if err != nil {
		row.Error = errorWithoutPath(err)
		return
	}
	row.Target = pathname.Escape(target)
	row.label += " -> " + row.Target
}

// errorWithoutPath returns the message of an error without the path, which the
// row already shows.
func errorWithoutPath(err error) string {
	switch toolerr.CodeOf(err) {
	case toolerr.PermissionDenied:
		return "permission denied"
	case toolerr.NotFound:
		return "gone"
	}
	return err.Error()
}
