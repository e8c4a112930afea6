// Package fileedit changes one file as a transaction, for the tools that edit
// files: it locks and reads the file, lets the tool decide, writes all or
// nothing, records how to undo the change, and remembers the new content as
// seen, so that the next change is not refused because of this one.
//
//	r := &fileedit.Rewriter{Store: store, Tool: "edit"}
//	done, err := r.Rewrite(ctx, fs, name, fileedit.Options{}, func(b *fileedit.Before) (*fileedit.After, error) {
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
// Before compares the file with the version that the model saw: IsSeenVersion
// reports whether it is still the same, DifferenceFromSeen returns the
// differences.
package fileedit

import (
	"context"
	"errors"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// MaxSize is the limit of a file's size in bytes, before and after the change:
// files are held in memory.
const MaxSize = 100 << 20

// maxAttempts is the number of attempts at a change while other programs change
// the file.
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

// Outcome is the result of a change that did not fail.
type Outcome struct {
	Before *Before
	After  *After
	Index  textfile.Index // of After: its etag, lines, encoding

	Created   bool // the file did not exist before
	Removed   bool // undo removed the file
	Unchanged bool // nothing was written because nothing changed
	DryRun    bool // nothing was written, as requested
	// Undone is the change that Undo reverted; nil for Rewrite.
	Undone *state.Change

	Written sandbox.Written
	// NoUndo is the reason why the change cannot be undone; nil if it can.
	NoUndo error
}

// Etag returns the etag of the file's new content, or in a dry run of the
// content it would have.
func (o *Outcome) Etag() textfile.Etag { return o.Index.Etag }

// Rewrite changes the file name and creates its missing parent directories. It calls
// change with the current file to get the new content. An error of change is
// returned as it is. If another program changes the file meanwhile, Rewrite calls
// change again, at most maxAttempts times in all, then it returns STALE, EXISTS
// or CONFLICT. It also returns LOCKED, TOO_LARGE and the errors of the sandbox.
// On any error the file is unchanged.
func (r *Rewriter) Rewrite(ctx context.Context, box *sandbox.FS, name string, o Options, change func(*Before) (*After, error)) (*Outcome, error) {
	for try := 1; ; try++ {
		done, err := r.runLocked(ctx, box, name, o, func(t *transaction) error {
			after, err := change(t.before)
			if err != nil {
				return err
			}
			return t.writeNew(after, o)
		})
		if err == nil || try == maxAttempts || ctx.Err() != nil || !errors.As(err, new(*changedMeanwhileError)) {
			return done, err
		}
	}
}
