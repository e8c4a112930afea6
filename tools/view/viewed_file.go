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

// maxTries is the number of attempts to read a file that changes while it is
// read.
const maxTries = 3

// viewedFile is a file being shown.
type viewedFile struct {
	*sandbox.File
	request
	shownPath string          // path in results
	head      []byte          // first bytes, at most textfile.HeadSize
	stamp     state.Stamp     // size and times when the file was opened
	index     *textfile.Index // of the whole file, with the detected encoding
	// headOnly means that the file is too large to read completely, and
	// index covers only its first bytes.
	headOnly bool
	// namedEncoding is the encoding that the client gave when it viewed
	// this version; "": none. It applies if the file is shown as text and
	// the call gives no encoding.
	namedEncoding textfile.Encoding
}

// viewFile returns the answer for a file or directory. It tries again if the file
// changes while it is read. If it keeps changing, viewFile returns CONFLICT.
func (v *viewer) viewFile(ctx context.Context, fsys *sandbox.FS, a request) (*answer, error) {
	for try := 1; ; try++ {
		got, err := v.viewFileOnce(ctx, fsys, a)
		switch {
		case !errors.Is(err, textfile.ErrChanged):
			return got, err
		case try == maxTries:
			return nil, toolerr.New(toolerr.Conflict, "%s keeps changing while it is read: try again when its writer has finished", pathname.Escape(a.name))
		}
	}
}

// viewFileOnce returns the answer for a file or directory, and records which
// lines the client has seen. It returns textfile.ErrChanged if the file changed
// while it was read.
func (v *viewer) viewFileOnce(ctx context.Context, fsys *sandbox.FS, a request) (*answer, error) {
	taken := time.Now()
	file, err := fsys.Open(a.name)
	if toolerr.Is(err, toolerr.IsADirectory) && !a.hex {
		return viewDirectory(ctx, fsys, a)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f := &viewedFile{File: file, request: a, shownPath: fsys.Display(file.Path), stamp: state.StampOf(file.Stat, taken)}
	if err := f.readHead(); err != nil {
		return nil, err
	}
	if err := f.applyPages(ctx); err != nil {
		return nil, err
	}
	if err := v.setIndex(ctx, f); err != nil {
		return nil, err
	}
	seen := v.store.ForSession(mcpkit.ClientSession(ctx))
	if before, ok := seen.Seen(f.Path); ok && !f.headOnly && before.Index.Etag == f.index.Etag && before.Index.Size == f.index.Size {
		f.namedEncoding = before.NamedEncoding
	}
	got, ranges, err := f.viewByKind(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.checkUnchanged(ctx, got); err != nil {
		return nil, err
	}
	if f.headOnly {
		return got, nil
	}
	if err := seen.Remember(state.Seen{Path: f.Path, Stamp: f.stamp, Index: *f.index, Ranges: ranges, NamedEncoding: f.encoding}); err != nil {
		slog.DebugContext(ctx, "recording the viewed file failed", "error", err)
	}
	return got, nil
}

// viewDirectory lists a directory as ls does.
func viewDirectory(ctx context.Context, fsys *sandbox.FS, a request) (*answer, error) {
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

// readHead sets f.head to the first bytes, which determine the kind of file. It
// returns SPECIAL_FILE for a file of /proc and the like.
func (f *viewedFile) readHead() error {
	f.head = make([]byte, min(max(f.Stat.Size, 1), textfile.HeadSize))
	n, err := f.ReadAt(f.head, 0)
	f.head = f.head[:n]
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if f.Stat.Size == 0 && n > 0 {
		if info, err := f.File.File.Stat(); err == nil && info.Size() == 0 {
			return toolerr.New(toolerr.SpecialFile, "%s has content but no size: view does not read pseudo-files", f.shownPath)
		}
		return textfile.ErrChanged
	}
	return nil
}

// readRange reads size bytes at offset at. It returns textfile.ErrChanged if
// the file is shorter.
func readRange(r io.ReaderAt, at, size int64) ([]byte, error) {
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

// viewByKind shows the file according to its kind. The ranges are the lines
// shown exactly as they are in the file.
func (f *viewedFile) viewByKind(ctx context.Context) (*answer, []state.Range, error) {
	var got *answer
	var err error
	format := imageFormat(f.head)
	switch {
	case f.metadata:
		got = f.viewMetadata()
	case f.hex:
		got, err = f.viewHex()
	case f.Masked:
		got, err = f.viewMasked(ctx)
	case f.encoding != "":
		return f.viewText(ctx)
	case format != "":
		if got, err = f.viewImage(ctx, format); f.isTextAfterAll(err) {
			return f.viewText(ctx)
		}
	case isPDF(f.head):
		if got, err = f.viewPDF(ctx); f.isTextAfterAll(err) {
			return f.viewText(ctx)
		}
	case isNotebook(f.shownPath) && f.Stat.Size <= maxNotebook:
		got, err = f.viewNotebook(ctx)
		if toolerr.Is(err, toolerr.BadEncoding) { // the file is only named like a notebook
			return f.viewText(ctx)
		}
	case f.index.Binary && f.namedEncoding == "":
		got = f.describeBinary()
	default:
		return f.viewText(ctx)
	}
	return got, nil, err
}

// isTextAfterAll reports whether err is about a text file that only begins like
// an image or a PDF.
func (f *viewedFile) isTextAfterAll(err error) bool {
	return toolerr.Is(err, toolerr.BinaryFile) && !f.index.Binary && !f.headOnly
}

// headerTag returns the end of a header: the etag, or why it is missing.
func (f *viewedFile) headerTag() string {
	if f.Masked {
		return "values masked"
	}
	if f.headOnly {
		return "no etag: file too large"
	}
	return "etag=" + f.index.Etag.String()
}
