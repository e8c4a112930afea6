// Package fileedit is the transaction on one file that the tools share which
// change files: it locks, reads, lets the tool decide, writes all or nothing,
// keeps what undoes the change, and remembers the new content as seen, so that
// the next change is not refused for this one.
//
//	r := &rewrite.Rewriter{Store: store, Tool: "edit"}
//	done, err := r.Do(ctx, fs, name, rewrite.Options{}, func(b *rewrite.Before) (*rewrite.After, error) {
//		if !b.Exists { … }
//		return rewrite.Splice(b.Content, changes), nil // or rewrite.Whole(content)
//	})
//	notes := done.Notes() // what is not as usual, to be said once
//
// Whatever goes wrong, the file is as it was, and so are its directories. A
// change by somebody who does not take part in the locks, as an editor, is
// noticed up to the last step: the tool then decides anew, once, on what the
// file is now.
//
// What the model has seen of a file is told by Before: Fresh says whether the
// file still is that, Since what is different.
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

// MaxSize is how large a file may be, before and after: it is held in memory.
const MaxSize = 100 << 20

// large is from which size on a file's memory is worth a thought.
const large = 8 << 20

// tries is how often a change is decided on while others change the file.
const tries = 2

// Rewriter changes files. It is safe for concurrent use.
type Rewriter struct {
	Store *state.Store
	Tool  string // names who made a change, in the journal
	// KeepHardlinks writes files with several names in place.
	KeepHardlinks bool
}

// Options are of one change.
type Options struct {
	DryRun bool // decide, but write nothing
	// Session names the client's session whose seen records count; see
	// state.Store.ForSession.
	Session string
}

// Before is a file as it was found, under the lock.
type Before struct {
	Path    string // absolute, links resolved
	Shown   string // as it is shown, and can be given back
	Exists  bool
	Masked  bool         // its values are not to be shown: sandbox.MaskSecrets
	Content []byte       // not to be changed
	Stat    sandbox.Stat // where it exists
	Etag    textfile.Etag
	Index   textfile.Index // of Content, with its Etag
	Seen    *state.Seen    // what the model saw last of it, of whichever version; nil: nothing known
	Parents []string       // directories that do not exist yet, as they are shown
}

// Fresh reports whether the file is what the model saw last: by content, and
// of a masked file by size and times, since a content that the model wrote
// itself would tell whether the one there now is the same.
func (b *Before) Fresh() bool {
	if b.Masked {
		return b.Exists && b.Seen != nil && b.Seen.Stamp.Same(state.StampOf(b.Stat, time.Time{}))
	}
	return b.Exists && b.Seen != nil && b.Seen.Index.Etag == b.Etag && b.Seen.Index.Size == int64(len(b.Content))
}

// Read returns how the file is written: in the encoding that the caller names,
// else in the one that the client named when it saw this version, else as
// detected. told says that it was named. A masked file is always read as
// detected: in another encoding its values might be read as names.
func (b *Before) Read(ctx context.Context, named textfile.Encoding) (index textfile.Index, told bool, err error) {
	if named == "" && b.Fresh() {
		named = b.Seen.Told
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

// Outcome is what became of a change.
type Outcome struct {
	Before *Before
	After  *After
	Index  textfile.Index // of After: its etag, lines, encoding

	Created   bool // there was no file
	Removed   bool // undone: there is no file any more
	Unchanged bool // nothing was written, for nothing is different
	DryRun    bool // nothing was written, as was asked
	// Undone is the change that Undo took back.
	Undone *state.Change

	Written sandbox.Written
	// NoUndo is why the change cannot be undone; nil when it can.
	NoUndo error
}

// Etag names the content that the file has now, or would have.
func (o *Outcome) Etag() textfile.Etag { return o.Index.Etag }

// Do changes one file, making its missing parent directories. change is given the file as it is, decides, and
// returns what it becomes, or an error, which Do returns as it is. It may be
// called again when somebody else changed the file meanwhile.
func (r *Rewriter) Do(ctx context.Context, fs *sandbox.FS, name string, o Options, change func(*Before) (*After, error)) (*Outcome, error) {
	for try := 1; ; try++ {
		done, err := r.once(ctx, fs, name, o, func(t *transaction) error {
			after, err := change(t.before)
			if err != nil {
				return err
			}
			return t.write(after, o)
		})
		if err == nil || try == tries || ctx.Err() != nil || !errors.As(err, new(*overtaken)) {
			return done, err
		}
	}
}

// overtaken is the error of a file that changed after it was read.
type overtaken struct{ error }

func (o *overtaken) Unwrap() error { return o.error }

// transaction is a change under way.
type transaction struct {
	*Rewriter
	ctx    context.Context
	fs     *sandbox.FS
	target *sandbox.Target
	views  *state.Store // of the client's session
	before *Before
	done   *Outcome
}

// once runs a change between locking and unlocking.
func (r *Rewriter) once(ctx context.Context, fs *sandbox.FS, name string, o Options, run func(*transaction) error) (*Outcome, error) {
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
	t := &transaction{Rewriter: r, ctx: ctx, fs: fs, target: target, views: r.Store.ForSession(o.Session)}
	if err := t.read(); err != nil {
		return nil, err
	}
	t.done = &Outcome{Before: t.before}
	if err := run(t); err != nil {
		return nil, err
	}
	return t.done, nil
}

// read takes the file as it is.
func (t *transaction) read() error {
	b := &Before{Path: t.target.Path, Shown: t.fs.Display(t.target.Path), Masked: t.target.Masked}
	for _, dir := range t.target.MissingParents() {
		b.Parents = append(b.Parents, t.fs.Display(dir))
	}
	t.before = b
	if seen, ok := t.views.Seen(b.Path); ok {
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
	if b.Stat.Size >= large {
		runtime.GC() // what the call before held is not to be held beside this
	}
	b.Content = make([]byte, b.Stat.Size)
	n, err := io.ReadFull(&stoppable{t.ctx, file}, b.Content)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && grew(file) {
		return &overtaken{toolerr.New(toolerr.Conflict, "%s keeps changing while it is read, nothing was changed: try again when its writer has finished", b.Shown)}
	}
	if cause := context.Cause(t.ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("reading %s stopped after %d bytes, nothing was changed: %w", b.Shown, n, err)
	}
	index, err := textfile.Scan(t.ctx, Whole(b.Content), b.Stat.Size, textfile.Options{Keep: true}) // several cores look
	if err != nil {
		return err
	}
	b.Etag, b.Index = index.Etag, *index
	return nil
}

// stoppable is a reader that a context stops between two pieces.
type stoppable struct {
	ctx  context.Context
	from io.Reader
}

// maxPiece is how much is read between two looks at the context.
const maxPiece = 4 << 20

func (s *stoppable) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, err
	}
	return s.from.Read(p[:min(len(p), maxPiece)])
}

// grew reports whether there is more to read than there was.
func grew(r io.Reader) bool {
	n, _ := r.Read(make([]byte, 1))
	return n > 0
}

func tooLarge(shown string, size int64) error {
	return toolerr.New(toolerr.TooLarge, "%s: %d bytes exceed the limit of %d (100 MiB), nothing was changed", shown, size, MaxSize).
		With("size", size)
}

// write makes the file what after is.
func (t *transaction) write(after *After, o Options) error {
	b, done := t.before, t.done
	if err := t.decide(after); err != nil {
		return err
	}
	done.DryRun = o.DryRun
	done.Unchanged = b.Exists && !after.Always && after.is(b.Content)
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

// decide takes note of what the file is to be.
func (t *transaction) decide(after *After) error {
	if after.Size() > MaxSize {
		return tooLarge(t.before.Shown, after.Size())
	}
	t.done.After, t.done.Created = after, !t.before.Exists
	return nil
}

// scan finds out what the new content is.
func (t *transaction) scan() error {
	index, err := textfile.Scan(t.ctx, t.done.After, t.done.After.Size(), textfile.Options{
		Encoding: t.done.After.Encoding, Like: &t.before.Index, Same: t.done.After.same(),
	})
	if err == nil {
		t.done.Index = *index
		t.done.Index.Guessed = index.Guessed || t.done.After.Guessed
	}
	return err
}

// replace writes what was decided, and remembers it. What the new content is
// is found out while it is written; ready is called before it takes the old
// one's place.
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
		return overtakenBy(err)
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

// overtakenBy marks the errors that say that somebody else was faster.
func overtakenBy(err error) error {
	for _, code := range []toolerr.Code{toolerr.Stale, toolerr.Exists, toolerr.Conflict} {
		if toolerr.Is(err, code) {
			return &overtaken{err}
		}
	}
	return err
}

// remember keeps the new content as seen. What cannot be remembered only
// costs a view.
func (t *transaction) remember(stat sandbox.Stat, taken time.Time) {
	b, done := t.before, t.done
	seen := state.Seen{Path: b.Path, Stamp: state.StampOf(stat, taken), Index: done.Index, Ranges: done.After.known(b, &done.Index)}
	if done.After.Told {
		seen.Told = done.Index.Encoding
	} else if b.Fresh() {
		seen.Told = b.Seen.Told
	}
	if b.Exists && b.Seen != nil && !b.Fresh() && !done.After.whole {
		// The file has changes that the model never saw. It stays behind, and
		// gets to know only what it just wrote.
		seen.Stamp, seen.Index = b.Seen.Stamp, b.Seen.Index
		if n := len(seen.Ranges); n > 0 {
			seen.Index.Lines = max(seen.Index.Lines, seen.Ranges[n-1].Last)
		}
	}
	if err := t.views.Remember(seen); err != nil {
		slog.DebugContext(t.ctx, "recording the viewed file failed", "error", err)
	}
}
