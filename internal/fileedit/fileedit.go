// Package fileedit changes one file as a transaction, for the tools that edit
// files: it locks and reads the file, lets the tool decide, writes all or
// nothing, records how to undo the change, and remembers the new content as
// seen, so that the next change is not refused because of this one.
//
//	r := &fileedit.Rewriter{Store: store, Tool: "edit"}
//	done, err := r.Do(ctx, fs, name, fileedit.Options{}, func(b *fileedit.Before) (*fileedit.After, error) {
//		if !b.Exists { … }
//		return fileedit.Splice(b.Content, changes), nil // or fileedit.Whole(content)
//	})
//	notes := done.Notes() // anything unusual about the change
//
// On any error, the file and its directories are unchanged. A program that does
// not take the locks, such as an editor, may change the file at the same time.
// This is detected up to the last step: the tool then decides a second time,
// based on the new content.
//
// Before compares the file with the version that the model saw: Fresh reports
// whether it is still the same, Since returns the differences.
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

// MaxSize is the limit of a file's size in bytes, before and after the change:
// files are held in memory.
const MaxSize = 100 << 20

// largeFile is the smallest size, in bytes, of a file whose memory is released
// early.
const largeFile = 8 << 20

// maxAttempts is the number of attempts at a change while others change the file.
const maxAttempts = 2

// Rewriter changes files. It is safe for concurrent use.
type Rewriter struct {
	Store *state.Store
	Tool  string // names the author of a change in the journal
	// KeepHardlinks writes files with several hard links in place.
	KeepHardlinks bool
}

// Options are the settings of one change.
type Options struct {
	DryRun bool // decide, but do not write
	// Session names the client's session whose records of seen files apply; see
	// state.Store.ForSession.
	Session string
}

// Before is a file as read under the lock.
type Before struct {
	Path    string // absolute, links resolved
	Shown   string // as shown; accepted as a path
	Exists  bool
	Masked  bool         // its values must not be shown: secret.Mask
	Content []byte       // must not be changed
	Stat    sandbox.Stat // if the file exists
	Etag    textfile.Etag
	Index   textfile.Index // of Content, with its Etag
	Seen    *state.Seen    // the version, of any age, that the model saw last; nil: unknown
	Parents []string       // missing parent directories, as shown
}

// Fresh reports whether the file is the version that the model saw last. It
// compares content, but of a masked file size and times: comparing the content
// would tell a model that wrote one version whether the file still has it.
func (b *Before) Fresh() bool {
	if b.Masked {
		return b.Exists && b.Seen != nil && b.Seen.Stamp.Same(state.StampOf(b.Stat, time.Time{}))
	}
	return b.Exists && b.Seen != nil && b.Seen.Index.Etag == b.Etag && b.Seen.Index.Size == int64(len(b.Content))
}

// Read returns the index of the file in its encoding: the encoding named by the
// caller, else the one that the client named when it saw this version, else the
// detected one. told reports that the encoding was named. A masked file always
// has the detected encoding: another one could make its values look like names.
func (b *Before) Read(ctx context.Context, named textfile.Encoding) (index textfile.Index, encodingNamed bool, err error) {
	if named == "" && b.Fresh() {
		named = b.Seen.NamedEncoding
	}
	if named == "" || !b.Exists || b.Masked || b.Index.NUL > 0 && !named.Wide() {
		return b.Index, false, nil
	}
	read, err := textfile.Scan(ctx, Whole(b.Content), int64(len(b.Content)), textfile.Options{Encoding: named, Keep: true})
	if err != nil {
		return b.Index, false, err
	}
	return *read, true, nil
}

// Outcome is the result of a change.
type Outcome struct {
	Before *Before
	After  *After
	Index  textfile.Index // of After: its etag, lines, encoding

	Created   bool // the file did not exist before
	Removed   bool // undo removed the file
	Unchanged bool // nothing was written because nothing changed
	DryRun    bool // nothing was written, as requested
	// Undone is the change that Undo reverted; nil for Do.
	Undone *state.Change

	Written sandbox.Written
	// NoUndo is the reason why the change cannot be undone; nil if it can.
	NoUndo error
}

// Etag returns the etag of the file's new content, or in a dry run of the
// content it would have.
func (o *Outcome) Etag() textfile.Etag { return o.Index.Etag }

// Do changes one file and creates its missing parent directories. change gets
// the current file and returns the new content, or an error, which Do returns
// unchanged. Do calls it again if somebody else changed the file in the
// meantime.
func (r *Rewriter) Do(ctx context.Context, box *sandbox.FS, name string, o Options, change func(*Before) (*After, error)) (*Outcome, error) {
	for try := 1; ; try++ {
		done, err := r.runLocked(ctx, box, name, o, func(t *transaction) error {
			after, err := change(t.before)
			if err != nil {
				return err
			}
			return t.write(after, o)
		})
		if err == nil || try == maxAttempts || ctx.Err() != nil || !errors.As(err, new(*changedMeanwhile)) {
			return done, err
		}
	}
}

// changedMeanwhile is the error for a file that changed after it was read.
type changedMeanwhile struct{ error }

func (o *changedMeanwhile) Unwrap() error { return o.error }

// transaction is a change in progress.
type transaction struct {
	*Rewriter
	ctx       context.Context
	box       *sandbox.FS
	target    *sandbox.Target
	seenStore *state.Store // the store of the client's session
	before    *Before
	done      *Outcome
}

// runLocked runs a change under the lock.
func (r *Rewriter) runLocked(ctx context.Context, fs *sandbox.FS, name string, o Options, run func(*transaction) error) (*Outcome, error) {
	target, err := fs.OpenForWrite(name)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	unlock, err := r.Store.Lock(ctx, target)
	if err != nil {
		return nil, err
	}
	defer unlock()
	t := &transaction{Rewriter: r, ctx: ctx, box: fs, target: target, seenStore: r.Store.ForSession(o.Session)}
	if err := t.read(); err != nil {
		return nil, err
	}
	t.done = &Outcome{Before: t.before}
	if err := run(t); err != nil {
		return nil, err
	}
	return t.done, nil
}

// read reads the file.
func (t *transaction) read() error {
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
	b.Exists, b.Stat = true, file.Stat
	if b.Stat.Size > MaxSize {
		return tooLarge(b.Shown, b.Stat.Size)
	}
	if b.Stat.Size >= largeFile {
		runtime.GC() // so that memory of the previous call is not held in addition
	}
	b.Content = make([]byte, b.Stat.Size)
	n, err := io.ReadFull(&contextReader{t.ctx, file}, b.Content)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && hasMore(file) {
		return &changedMeanwhile{toolerr.New(toolerr.Conflict, "%s keeps changing while it is read, nothing was changed: try again when its writer has finished", b.Shown)}
	}
	if cause := context.Cause(t.ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("reading %s stopped after %d bytes, nothing was changed: %w", b.Shown, n, err)
	}
	index, err := textfile.Scan(t.ctx, Whole(b.Content), b.Stat.Size, textfile.Options{Keep: true}) // on several cores
	if err != nil {
		return err
	}
	b.Etag, b.Index = index.Etag, *index
	return nil
}

// contextReader is a reader that fails between two pieces after ctx has ended.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

// maxPiece is the number of bytes read between two checks of the context.
const maxPiece = 4 << 20

func (s *contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, err
	}
	return s.from.Read(p[:min(len(p), maxPiece)])
}

// hasMore reports whether the file has more bytes than expected.
func hasMore(r io.Reader) bool {
	n, _ := r.Read(make([]byte, 1))
	return n > 0
}

func tooLarge(shown string, size int64) error {
	return toolerr.New(toolerr.TooLarge, "%s: %d bytes exceed the limit of %d (100 MiB), nothing was changed", shown, size, MaxSize).
		With("size", size)
}

// write writes after to the file.
func (t *transaction) write(after *After, o Options) error {
	b, done := t.before, t.done
	if err := t.decide(after); err != nil {
		return err
	}
	done.DryRun = o.DryRun
	done.Unchanged = b.Exists && !after.Always && after.equals(b.Content)
	if done.Unchanged || done.DryRun {
		err := t.scan()
		if err == nil && done.Unchanged {
			t.remember(b.Stat, time.Now())
		}
		return err
	}
	var pending *state.Pending
	err := t.replace(func() {
		change := after.change(b, done.Index.Etag)
		change.Tool, change.Created, change.Mode = t.Tool, !b.Exists, b.Stat.Mode.Perm()
		pending, done.NoUndo = t.Store.Record(change)
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

// decide records the new content and checks its size.
func (t *transaction) decide(after *After) error {
	if after.Size() > MaxSize {
		return tooLarge(t.before.Shown, after.Size())
	}
	t.done.After, t.done.Created = after, !t.before.Exists
	return nil
}

// scan computes the index of the new content.
func (t *transaction) scan() error {
	index, err := textfile.Scan(t.ctx, t.done.After, t.done.After.Size(), textfile.Options{
		Encoding: t.done.After.Encoding, Previous: &t.before.Index, SamePrefix: t.done.After.unchangedPrefix(),
	})
	if err == nil {
		t.done.Index = *index
		t.done.Index.Guessed = index.Guessed || t.done.After.Guessed
	}
	return err
}

// replace writes the new content and remembers it. It computes the index while
// it writes, and calls ready before the new file replaces the old one.
func (t *transaction) replace(ready func()) error {
	taken := time.Now()
	written, err := t.target.Replace(t.ctx, func(w io.Writer) error {
		scanned := make(chan error, 1)
		go func() { scanned <- t.scan() }()
		err := t.done.After.write(w)
		if failed := <-scanned; err == nil {
			err = failed
		}
		if err == nil {
			ready()
		}
		return err
	}, t.options())
	if err != nil {
		return markChangedMeanwhile(err)
	}
	t.done.Written = *written
	t.remember(written.Stat, taken)
	return nil
}

func (t *transaction) options() sandbox.ReplaceOptions {
	o := sandbox.ReplaceOptions{MakeParents: true, KeepHardlinks: t.KeepHardlinks, Executable: t.done.After.Executable}
	if t.before.Exists {
		o.Expect = &t.before.Stat
	} else {
		o.Create = true
	}
	return o
}

// markChangedMeanwhile wraps errors that report a change by somebody else, so that Do
// tries again.
func markChangedMeanwhile(err error) error {
	for _, code := range []toolerr.Code{toolerr.Stale, toolerr.Exists, toolerr.Conflict} {
		if toolerr.Is(err, code) {
			return &changedMeanwhile{err}
		}
	}
	return err
}

// remember records the new content as seen. It ignores errors: their only
// effect is that the model must view the file again.
func (t *transaction) remember(stat sandbox.Stat, taken time.Time) {
	b, done := t.before, t.done
	seen := state.Seen{Path: b.Path, Stamp: state.StampOf(stat, taken), Index: done.Index, Ranges: done.After.knownLines(b, &done.Index)}
	if done.After.EncodingNamed {
		seen.NamedEncoding = done.Index.Encoding
	} else if b.Fresh() {
		seen.NamedEncoding = b.Seen.NamedEncoding
	}
	if b.Exists && b.Seen != nil && !b.Fresh() && !done.After.whole {
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
