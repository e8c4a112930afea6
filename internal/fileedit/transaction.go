package fileedit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// largeFile is the smallest size, in bytes, of a file whose memory is released
// early.
const largeFile = 8 << 20

// changedMeanwhileError marks the error of a change that failed because another
// program changed the file after it was read, so that Rewrite tries again.
type changedMeanwhileError struct{ error }

func (o *changedMeanwhileError) Unwrap() error { return o.error }

// transaction is a change in progress, while it holds the lock of its file.
type transaction struct {
	*Rewriter
	ctx       context.Context
	box       *sandbox.FS
	target    *sandbox.Target
	seenStore *state.Store // the store of the client's session
	before    *Before
	done      *Outcome
}

// runLocked locks and reads the file, calls run, and unlocks the file. It
// returns the outcome that run has completed, or run's error.
func (r *Rewriter) runLocked(ctx context.Context, box *sandbox.FS, name string, o Options, run func(*transaction) error) (*Outcome, error) {
	target, err := box.OpenForWrite(name)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	unlock, err := r.Store.Lock(ctx, target)
	if err != nil {
		return nil, err
	}
	defer unlock()
	t := &transaction{Rewriter: r, ctx: ctx, box: box, target: target, seenStore: r.Store.ForSession(o.Session)}
	if err := t.readFile(); err != nil {
		return nil, err
	}
	t.done = &Outcome{Before: t.before}
	if err := run(t); err != nil {
		return nil, err
	}
	return t.done, nil
}

// readFile reads the file into t.before. A missing file is no error. It returns
// TOO_LARGE for more than MaxSize bytes, and a changedMeanwhileError if the
// size changes while it is read.
func (t *transaction) readFile() error {
	b := &Before{Path: t.target.Path, Shown: t.box.Display(t.target.Path), Masked: t.target.Masked}
	for _, dir := range t.target.MissingParents() {
		b.Parents = append(b.Parents, t.box.Display(dir))
	}
	t.before = b
	if seen, ok := t.seenStore.Seen(b.Path); ok {
		b.Seen = seen
	}
	_, err := t.target.Stat()
	if toolerr.Is(err, toolerr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := t.target.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	b.Exists, b.Stat, b.Masked = true, file.Stat, file.Masked
	if b.Stat.Size > MaxSize {
		return tooLarge(b.Shown, b.Stat.Size)
	}
	if b.Stat.Size >= largeFile {
		runtime.GC() // so that memory of the previous call is not held in addition
	}
	b.Content = make([]byte, b.Stat.Size)
	n, err := io.ReadFull(&contextReader{t.ctx, file}, b.Content)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && hasMore(file) {
		return &changedMeanwhileError{toolerr.New(toolerr.Conflict, "%s keeps changing while it is read, nothing was changed: try again when its writer has finished", b.Shown)}
	}
	if cause := context.Cause(t.ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("reading %s stopped after %d bytes, nothing was changed: %w", b.Shown, n, err)
	}
	index, err := textfile.Scan(t.ctx, Whole(b.Content), b.Stat.Size, textfile.Options{KeepFacts: true}) // on several cores
	if err != nil {
		return err
	}
	b.Etag, b.Index = index.Etag, *index
	return nil
}

// contextReader is a reader that returns the cause of ctx once ctx has ended.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

// maxReadBytes is the number of bytes read between two checks of the context.
const maxReadBytes = 4 << 20

func (s *contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, err
	}
	return s.from.Read(p[:min(len(p), maxReadBytes)])
}

// hasMore reports whether r has at least one more byte, by reading one.
func hasMore(r io.Reader) bool {
	n, _ := r.Read(make([]byte, 1))
	return n > 0
}

// tooLarge returns a TOO_LARGE error for a file of size bytes.
func tooLarge(shown string, size int64) error {
	return toolerr.New(toolerr.TooLarge, "%s: %d bytes exceed the limit of %d (100 MiB), nothing was changed", shown, size, MaxSize).
		With("size", size)
}

// writeNew writes the new content and records how to undo the change. In a dry
// run, or if the file already has the content, it only computes the index. A
// failure to record the change is stored in done.NoUndo.
func (t *transaction) writeNew(after *After, o Options) error {
	b, done := t.before, t.done
	if err := t.setNewContent(after); err != nil {
		return err
	}
	done.DryRun = o.DryRun
	done.Unchanged = b.Exists && !after.AlwaysWrite && after.equals(b.Content)
	if done.Unchanged || done.DryRun {
		err := t.indexNewContent()
		if err == nil && done.Unchanged {
			t.rememberSeen(b.Stat, time.Now())
		}
		return err
	}
	var pending *state.PendingChange
	err := t.replaceFile(func() {
		change := after.journalChange(b, done.Index.Etag)
		change.Tool, change.Created, change.Mode = t.Tool, !b.Exists, b.Stat.Mode.Perm()
		pending, done.NoUndo = t.Store.RecordChange(change)
	})
	if err != nil {
		pending.Discard()
		return err
	}
	if done.NoUndo == nil {
		done.NoUndo = pending.Commit()
	}
	return nil
}

// setNewContent sets the content to be written in t.done. It returns TOO_LARGE
// for more than MaxSize bytes.
func (t *transaction) setNewContent(after *After) error {
	if after.Size() > MaxSize {
		return tooLarge(t.before.Shown, after.Size())
	}
	t.done.After, t.done.Created = after, !t.before.Exists
	return nil
}

// indexNewContent sets the index of the new content in t.done.
func (t *transaction) indexNewContent() error {
	index, err := textfile.Scan(t.ctx, t.done.After, t.done.After.Size(), textfile.Options{
		Encoding: t.done.After.Encoding, Previous: &t.before.Index, SamePrefix: t.done.After.unchangedPrefix(),
	})
	if err == nil {
		t.done.Index = *index
		t.done.Index.Guessed = index.Guessed || t.done.After.Guessed
	}
	return err
}

// replaceFile writes the new content and records it as seen. It computes the
// index while it writes. It calls ready when everything is written, just before
// the new file replaces the old one.
func (t *transaction) replaceFile(ready func()) error {
	taken := time.Now()
	written, err := t.target.Replace(t.ctx, func(w io.Writer) error {
		scanned := make(chan error, 1)
		go func() { scanned <- t.indexNewContent() }()
		err := t.done.After.writeTo(w)
		if failed := <-scanned; err == nil {
			err = failed
		}
		if err == nil {
			ready()
		}
		return err
	}, t.replaceOptions())
	if err != nil {
		return markChangedMeanwhile(err)
	}
	t.done.Written = *written
	t.rememberSeen(written.Stat, taken)
	return nil
}

// replaceOptions returns the options for writing the new content. They let the
// write fail if the file is not the version that was read.
func (t *transaction) replaceOptions() sandbox.ReplaceOptions {
	o := sandbox.ReplaceOptions{MakeParents: true, KeepHardlinks: t.KeepHardlinks, Executable: t.done.After.Executable}
	if t.before.Exists {
		o.Expect = &t.before.Stat
	} else {
		o.Create = true
	}
	return o
}

// markChangedMeanwhile wraps STALE, EXISTS and CONFLICT errors in a
// changedMeanwhileError, so that Rewrite tries again. It returns other errors as
// they are.
func markChangedMeanwhile(err error) error {
	for _, code := range []toolerr.Code{toolerr.Stale, toolerr.Exists, toolerr.Conflict} {
		if toolerr.Is(err, code) {
			return &changedMeanwhileError{err}
		}
	}
	return err
}

// rememberSeen records the new content as seen by the model. stat describes the
// file, taken is a time before stat. Errors are ignored: their only effect is
// that the model must view the file again.
func (t *transaction) rememberSeen(stat sandbox.Stat, taken time.Time) {
	b, done := t.before, t.done
	seen := state.Seen{Path: b.Path, Stamp: state.StampOf(stat, taken), Index: done.Index, Ranges: done.After.knownLines(b, &done.Index)}
	if done.After.EncodingNamed {
		seen.NamedEncoding = done.Index.Encoding
	} else if b.IsSeenVersion() {
		seen.NamedEncoding = b.Seen.NamedEncoding
	}
	if b.Exists && b.Seen != nil && !b.IsSeenVersion() && !done.After.whole {
		// The file has changes that the model never saw. The record keeps the
		// old version and gains only the lines just written.
		seen.Stamp, seen.Index = b.Seen.Stamp, b.Seen.Index
		if n := len(seen.Ranges); n > 0 {
			seen.Index.Lines = max(seen.Index.Lines, seen.Ranges[n-1].Last)
		}
	}
	if err := t.seenStore.Remember(seen); err != nil {
		slog.DebugContext(t.ctx, "recording the viewed file failed", "error", err)
	}
}
