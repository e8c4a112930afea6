package fileedit

import (
	"context"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Undo takes back the last change of a file by these tools, if the file still
// is what that change made of it: STALE otherwise, NOT_FOUND when no change is
// known. A file that the change created is removed; the directories made for
// it stay. Undoing again takes back the change before.
func (r *Rewriter) Undo(ctx context.Context, fs *sandbox.FS, name string, o Options) (*Outcome, error) {
	return r.once(ctx, fs, name, o, func(t *transaction) error {
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
		} else if err := t.decide(Whole(content)); err != nil {
			return err
		}
		if o.DryRun {
			t.done.DryRun = true
			return t.scan()
		}
		reopened := change.Reopen()
		if err := t.takeBack(change); err != nil {
			_ = reopened.Commit()
			return err
		}
		// A change that stays in the journal does no harm: what it made is
		// not in the file any more.
		_ = change.Forget()
		return nil
	})
}

// takeBack makes the file what it was before a change. That is no change of
// its own for the journal, else undoing twice would lead back.
func (t *transaction) takeBack(change *state.Change) error {
	if !change.Created {
		return t.replace(func() {})
	}
	unsynced, err := t.target.Remove(t.ctx, &t.before.Stat)
	t.done.Written.Unsynced = unsynced
	return err
}
