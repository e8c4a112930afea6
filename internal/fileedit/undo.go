package fileedit

import (
	"context"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Undo reverts the last change that these tools made to the file name. It
// returns STALE if the file has been changed since, and NOT_FOUND if no change
// is recorded or the file does not exist. If the change created the file, Undo
// removes it, but not the directories that were created for it. A second Undo
// reverts the change before that.
func (r *Rewriter) Undo(ctx context.Context, box *sandbox.FS, name string, o Options) (*Outcome, error) {
	return r.runLocked(ctx, box, name, o, func(t *transaction) error {
		b := t.before
		if !b.Exists {
			return toolerr.New(toolerr.NotFound, "%s does not exist, so there is nothing to undo", b.Shown)
		}
		change, err := t.Store.LastChange(b.Path, state.Version{Size: int64(len(b.Content)), Etag: b.Etag})
		if err != nil {
			return err
		}
		content, err := change.Restore(b.Content)
		if err != nil {
			return err
		}
		t.done.Undone = change
		if change.Created {
			t.done.After, t.done.Removed = Whole(nil), true
		} else if err := t.setNewContent(Whole(content)); err != nil {
			return err
		}
		if o.DryRun {
			t.done.DryRun = true
			return t.indexNewContent()
		}
		reopened := change.Reopen()
		if err := t.restore(change); err != nil {
			_ = reopened.Commit()
			return err
		}
		// If the record stays in the journal, it does no harm: it describes
		// content that the file no longer has.
		_ = change.Forget()
		return nil
	})
}

// restore writes the content from before a change, or removes the file that the
// change created. It records no change in the journal: otherwise a second undo
// would revert the first.
func (t *transaction) restore(change *state.Change) error {
	if !change.Created {
		return t.replaceFile(func() {})
	}
	unsynced, err := t.target.Remove(t.ctx, &t.before.Stat)
	t.done.Written.Unsynced = unsynced
	return err
}
