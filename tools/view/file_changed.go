package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// waitUntilSettled waits for the resolution of file times if a large file was
// changed just now, so that the result of its scan can be saved.
func (f *viewedFile) waitUntilSettled(ctx context.Context) error {
	if f.stamp.Settled() {
		return nil
	}
	timer := time.NewTimer(state.Grain)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	taken := time.Now()
	if f.isUnchanged() {
		f.stamp.Taken = taken.UnixNano()
	}
	return nil
}

// isUnchanged reports whether size and time of the file are the same as when it
// was opened.
func (f *viewedFile) isUnchanged() bool {
	info, err := f.File.File.Stat()
	return err == nil && info.Size() == f.Stat.Size && info.ModTime().Equal(f.Stat.ModTime)
}

// checkUnchanged returns textfile.ErrChanged if the file changed while it was
// read. A file that only grew, such as a log, is shown up to its old size: then
// checkUnchanged adds a note to the answer and returns nil. A small file is
// read again to check that it only grew, because a file that was truncated and
// refilled may also be longer.
func (f *viewedFile) checkUnchanged(ctx context.Context, got *answer) error {
	if f.isUnchanged() {
		return nil
	}
	info, err := f.File.File.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= f.Stat.Size {
		return textfile.ErrChanged
	}
	if f.Stat.Size <= textfile.LineIndexMin {
		again, err := textfile.Scan(ctx, f, f.Stat.Size, textfile.Options{})
		if err != nil {
			return err
		}
		head, err := readRange(f, 0, int64(len(f.head)))
		if err != nil {
			return err
		}
		// The head was read separately, and Linux shows zeros for a
		// moment while a file is being truncated.
		if again.Etag != f.index.Etag || again.Format != f.index.Format || !bytes.Equal(head, f.head) {
			return textfile.ErrChanged
		}
	}
	got.text += fmt.Sprintf("note: the file grew to %d bytes while it was read; this is its state at %d\n", info.Size(), f.Stat.Size)
	return nil
}
