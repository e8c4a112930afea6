package main

import (
	"bytes"
	"context"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// maxScan bounds the files that are read completely, in bytes; even a
	// fast disk cannot deliver more before the deadline.
	maxScan = 256 << 30
	// etagTime bounds the time to read a file only for an etag, without
	// which the answer is still useful.
	etagTime = 5 * time.Second
)

// setIndex sets the index of the file: from the state directory if this version
// was scanned before, otherwise by reading the file. If reading takes too long and the
// first bytes are enough to answer, it uses only these. It returns TOO_LARGE for a text
// that is too large to be read.
func (v *viewer) setIndex(ctx context.Context, f *viewedFile) error {
	if seen, ok := v.store.ForSession(mcpkit.ClientSession(ctx)).SeenWithStamp(f.Path, f.stamp); ok {
		f.index = &seen.Index
		return nil
	}
	if f.Stat.Size <= textfile.LineIndexMin {
		return f.indexWhole(ctx)
	}
	whole, err := f.needsWhole(ctx)
	switch {
	case err != nil:
		return err
	case f.Stat.Size > maxScan && whole:
		return toolerr.New(toolerr.TooLarge, "%s has %d bytes, and view reads text up to %d; hex=true shows any part, with offset and limit in bytes",
			f.shownPath, f.Stat.Size, int64(maxScan))
	case f.Stat.Size > maxScan:
		return f.indexHead(ctx)
	}
	if err := f.waitUntilSettled(ctx); err != nil {
		return err
	}
	if whole {
		return f.indexWhole(ctx)
	}
	short, stop := context.WithTimeout(ctx, etagTime)
	defer stop()
	if err := f.indexWhole(short); err == nil || short.Err() == nil || ctx.Err() != nil {
		return err
	}
	return f.indexHead(ctx)
}

// indexWhole sets f.index by reading the whole file.
func (f *viewedFile) indexWhole(ctx context.Context) (err error) {
	f.index, err = textfile.Scan(ctx, f, f.Stat.Size, textfile.Options{Progress: func(done int64) {
		mcpkit.Progress(ctx, float64(done), float64(f.Stat.Size), "reading "+f.shownPath)
	}})
	return err
}

// indexHead sets the index from the first bytes, and sets headOnly.
func (f *viewedFile) indexHead(ctx context.Context) (err error) {
	f.headOnly = true
	f.index, err = textfile.Scan(ctx, bytes.NewReader(f.head), int64(len(f.head)), textfile.Options{})
	return err
}

// needsWhole reports whether the answer needs more than the first bytes and the
// requested part.
func (f *viewedFile) needsWhole(ctx context.Context) (bool, error) {
	switch {
	case f.metadata, f.hex, f.Masked:
		return false, nil
	case f.encoding != "":
		return true, nil
	case imageFormat(f.head) != "", isPDF(f.head):
		return false, nil
	}
	first, err := textfile.Scan(ctx, bytes.NewReader(f.head), int64(len(f.head)), textfile.Options{})
	return err == nil && !first.Binary, err
}
