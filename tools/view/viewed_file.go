package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/dirtree"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// openTries is the number of attempts to read a file that changes while it is
// read.
const openTries = 3

// opened is a file being shown.
type opened struct {
	*sandbox.File
	ask
	shown string // path in results
	head  []byte // first bytes, at most textfile.HeadSize
	stamp state.Stamp
	index *textfile.Index // of the whole file, with the detected encoding
	// unread means that the file is too large to read completely, and index
	// covers only its first bytes.
	unread bool
	// told is the encoding that the client gave when it viewed this
	// version; "": none. It applies if the file is shown as text and the
	// call gives no encoding.
	told textfile.Encoding
}

// show returns the answer for a file or directory.
func (v *viewer) show(ctx context.Context, fsys *sandbox.FS, a ask) (*answer, error) {
	for try := 1; ; try++ {
		got, err := v.showOnce(ctx, fsys, a)
		switch {
		case !errors.Is(err, textfile.ErrChanged):
			return got, err
		case try == openTries:
			return nil, toolerr.New(toolerr.Conflict, "%s keeps changing while it is read: try again when its writer has finished", pathname.Escape(a.name))
		}
	}
}

func (v *viewer) showOnce(ctx context.Context, fsys *sandbox.FS, a ask) (*answer, error) {
	taken := time.Now()
	file, err := fsys.Open(a.name)
	if toolerr.Is(err, toolerr.IsADirectory) && !a.hex {
		return showDirectory(ctx, fsys, a)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f := &opened{File: file, ask: a, shown: fsys.Display(file.Path), stamp: state.StampOf(file.Stat, taken)}
	if err := f.readHead(); err != nil {
		return nil, err
	}
	if err := f.usePages(ctx); err != nil {
		return nil, err
	}
	if err := v.scan(ctx, f); err != nil {
		return nil, err
	}
	seen := v.store.ForSession(mcpkit.ClientSession(ctx))
	if before, ok := seen.Seen(f.Path); ok && !f.unread && before.Index.Etag == f.index.Etag && before.Index.Size == f.index.Size {
		f.told = before.NamedEncoding
	}
	got, ranges, err := f.answer(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.unchanged(ctx, got); err != nil {
		return nil, err
	}
	if f.unread {
		return got, nil
	}
	if err := seen.Remember(state.Seen{Path: f.Path, Stamp: f.stamp, Index: *f.index, Ranges: ranges, NamedEncoding: f.encoding}); err != nil {
		slog.DebugContext(ctx, "recording the viewed file failed", "error", err)
	}
	return got, nil
}

// showDirectory lists a directory like ls.
func showDirectory(ctx context.Context, fsys *sandbox.FS, a ask) (*answer, error) {
	page, err := dirtree.Tree(ctx, fsys, a.name, dirtree.Options{
		Limit: int(min(a.limit, 10_000)), Offset: int(min(a.offset, 1<<30)), Budget: a.budget,
	})
	if err != nil {
		return nil, err
	}
	return &answer{text: dirtree.Render(page), meta: meta{
		Path: page.Path, Type: "directory", Truncated: page.NextOffset > 0, NextOffset: int64(page.NextOffset),
	}}, nil
}

// readHead reads the first bytes, which determine the kind of file.
func (f *opened) readHead() error {
	f.head = make([]byte, min(max(f.Stat.Size, 1), textfile.HeadSize))
	n, err := f.ReadAt(f.head, 0)
	f.head = f.head[:n]
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if f.Stat.Size == 0 && n > 0 {
		if info, err := f.File.File.Stat(); err == nil && info.Size() == 0 {
			return toolerr.New(toolerr.SpecialFile, "%s has content but no size: view does not read pseudo-files", f.shown)
		}
		return textfile.ErrChanged
	}
	return nil
}

// readAll reads size bytes at offset at. It returns textfile.ErrChanged if the
// file is shorter.
func readAll(r io.ReaderAt, at, size int64) ([]byte, error) {
	raw := make([]byte, size)
	n, err := r.ReadAt(raw, at)
	switch {
	case int64(n) == size:
		return raw, nil
	case err == nil || errors.Is(err, io.EOF):
		return nil, textfile.ErrChanged
	}
	return nil, err
}

// answer shows the file according to its kind. The ranges are the lines shown
// exactly as they are in the file.
func (f *opened) answer(ctx context.Context) (*answer, []state.Range, error) {
	var got *answer
	var err error
	format := imageFormat(f.head)
	switch {
	case f.metadata:
		got = f.describe()
	case f.hex:
		got, err = f.dump()
	case f.Masked:
		got, err = f.masked(ctx)
	case f.encoding != "":
		return f.text(ctx)
	case format != "":
		if got, err = f.image(ctx, format); f.onlyBegins(err) {
			return f.text(ctx)
		}
	case isPDF(f.head):
		if got, err = f.pdf(ctx); f.onlyBegins(err) {
			return f.text(ctx)
		}
	case isNotebook(f.shown) && f.Stat.Size <= maxNotebook:
		got, err = f.notebook(ctx)
		if toolerr.Is(err, toolerr.BadEncoding) { // the file is only named like a notebook
			return f.text(ctx)
		}
	case f.index.Binary && f.told == "":
		got = f.binary()
	default:
		return f.text(ctx)
	}
	return got, nil, err
}

// onlyBegins reports whether err is about a text file that begins like an image
// or a PDF.
func (f *opened) onlyBegins(err error) bool {
	return toolerr.Is(err, toolerr.BinaryFile) && !f.index.Binary && !f.unread
}

// tag returns the end of a header.
func (f *opened) tag() string {
	if f.Masked {
		return "values masked"
	}
	if f.unread {
		return "no etag: file too large"
	}
	return "etag=" + f.index.Etag.String()
}
