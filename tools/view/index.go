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
	// glanceTime bounds the time to read a file only for an etag, without
	// which the answer is still useful.
	glanceTime = 5 * time.Second
)

// scan sets the index of the file: from the state directory if this version was
// scanned before, otherwise by reading the file. If reading takes too long and
// the first bytes are enough to answer, it uses only those.
func (v *viewer) scan(ctx context.Context, f *opened) error {
	if seen, ok := v.store.ForSession(mcpkit.ClientSession(ctx)).Current(f.Path, f.stamp); ok {
		f.index = &seen.Index
		return nil
	}
	if f.Stat.Size <= textfile.LineIndexMin {
		return f.read(ctx)
	}
	whole, err := f.needsWhole(ctx)
	switch {
	case err != nil:
		return err
	case f.Stat.Size > maxScan && whole:
		return toolerr.New(toolerr.TooLarge, "%s has %d bytes, and view reads text up to %d; hex=true shows any part, with offset and limit in bytes",
			f.shown, f.Stat.Size, int64(maxScan))
	case f.Stat.Size > maxScan:
		return f.glance(ctx)
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	if whole {
		return f.read(ctx)
	}
	short, stop := context.WithTimeout(ctx, glanceTime)
	defer stop()
	if err := f.read(short); err == nil || short.Err() == nil || ctx.Err() != nil {
		return err
	}
	return f.glance(ctx)
}

// read sets the index by reading the whole file.
func (f *opened) read(ctx context.Context) (err error) {
	f.index, err = textfile.Scan(ctx, f, f.Stat.Size, textfile.Options{Progress: func(done int64) {
		mcpkit.Progress(ctx, float64(done), float64(f.Stat.Size), "reading "+f.shown)
	}})
	return err
}

// glance sets the index from the first bytes, and sets unread.
func (f *opened) glance(ctx context.Context) (err error) {
	f.unread = true
	f.index, err = textfile.Scan(ctx, bytes.NewReader(f.head), int64(len(f.head)), textfile.Options{})
	return err
}

// needsWhole reports whether the answer needs more than the first bytes and the
// requested part.
func (f *opened) needsWhole(ctx context.Context) (bool, error) {
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
