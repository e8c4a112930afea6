package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// undo reverts the last change of a file and returns the answer. It ignores the
// etag: the file must still have the text that the change wrote.
func (e *editor) undo(ctx context.Context, fsys *sandbox.FS, r request) (*mcpkit.Result, error) {
	done, err := e.rewriter.Undo(ctx, fsys, r.path, fileedit.Options{DryRun: r.dryRun, Session: mcpkit.ClientSession(ctx)})
	if err != nil {
		return nil, err
	}
	m := newMeta(done)
	m.Undone = !done.DryRun
	shown := done.Before.Shown
	head := fmt.Sprintf("%s  %s%s  %s\n", shown, describeUndo(done), done.Undone.Time.Format(time.DateTime), describeEtag(done))
	d := fitDiff(ctx, newUndoDiff(ctx, done), textdiff.Options{}, mcpkit.Budget(ctx), len(head))
	m.Added, m.Removed = d.Added, d.Removed
	var text strings.Builder
	text.WriteString(head + d.Text)
	appendNotes(&text, &m, done, d, nil)
	return &mcpkit.Result{Text: text.String(), Meta: m}, nil
}

// describeUndo describes the reverted change; its time follows.
func describeUndo(done *fileedit.Outcome) string {
	undid, removed := "undid", "removed"
	if done.DryRun {
		undid, removed = "dry run, nothing was written: would undo", "dry run, nothing was written: would remove"
	}
	if done.Removed {
		return fmt.Sprintf("%s the file that %s created at ", removed, done.Undone.Tool)
	}
	return fmt.Sprintf("%s the change that %s made at ", undid, done.Undone.Tool)
}

// newUndoDiff returns a function that makes the diff of the reversal. The diff
// is empty for a file that is not text.
func newUndoDiff(ctx context.Context, done *fileedit.Outcome) func(textdiff.Options) textdiff.Diff {
	nothing := func(textdiff.Options) textdiff.Diff { return textdiff.Diff{} }
	before, err := splice.Open(ctx, done.Before.Content)
	if err != nil {
		return nothing
	}
	if before.Encoding == textfile.UTF8 && before.EOL == '\n' && !done.Before.Masked && !done.Removed {
		u := done.Undone // the bytes are known: no copy is needed
		change := textdiff.Change{Start: int(u.Start), End: len(before.Text) - int(u.End), New: string(u.Removed)}
		return func(o textdiff.Options) textdiff.Diff {
			return textdiff.Unified(before.Text, []textdiff.Change{change}, o)
		}
	}
	after, err := splice.Open(ctx, done.After.Bytes())
	if err != nil {
		return nothing
	}
	old, newText := textForDiff(before, done.Before.Masked), textForDiff(after, done.Before.Masked)
	changes := textdiff.Between(old, string(newText))
	return func(o textdiff.Options) textdiff.Diff { return textdiff.Unified(old, changes, o) }
}
