package state_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// editor is a tool that follows the package comment.
type editor struct {
	fs    *sandbox.FS
	store *state.Store
}

// change writes new content to a file, or undoes its last change if after is
// nil.
func (e editor) change(name string, after []byte) (err error) {
	ctx := context.Background()
	target, err := e.fs.OpenForWrite(name)
	if err != nil {
		return err
	}
	defer target.Close()
	unlock, err := e.store.Lock(ctx, target)
	if err != nil {
		return err
	}
	defer unlock()
	options := sandbox.ReplaceOptions{MakeParents: true, Create: true}
	var before []byte
	file, err := target.Open()
	switch {
	case err == nil:
		defer file.Close()
		options.Create, options.Expect = false, &file.Stat
		if before, err = io.ReadAll(file); err != nil {
			return err
		}
	case !toolerr.Is(err, toolerr.NotFound):
		return err
	}
	if after == nil {
		return e.undo(ctx, target, before, options)
	}
	change := state.NewChange("edit", target.Path, before, after)
	change.Created = options.Create
	pending, noUndo := e.store.RecordChange(change)
	if _, err := target.Replace(ctx, sandbox.Bytes(after), options); err != nil {
		pending.Discard()
		return err
	}
	if noUndo != nil {
		return noUndo
	}
	return pending.Commit()
}

func (e editor) undo(ctx context.Context, target *sandbox.Target, current []byte, options sandbox.ReplaceOptions) error {
	last, err := e.store.LastChange(target.Path, state.VersionOf(current))
	if err != nil {
		return err
	}
	before, err := last.Restore(current)
	if err != nil {
		return err
	}
	if last.Created {
		_, err = target.Remove(ctx, options.Expect)
	} else {
		_, err = target.Replace(ctx, sandbox.Bytes(before), options)
	}
	if err != nil {
		return err
	}
	return last.Forget()
}

// Change and undo a file, through a link and by the file's own name.
func TestChangeAndUndo(t *testing.T) {
	root := t.TempDir()
	fs, err := sandbox.New(sandbox.Config{Roots: []string{root}, Getenv: func(string) string { return "" }}).FS(context.Background())
	require.NoError(t, err)
	e := editor{fs: fs, store: state.New(state.Config{Dir: t.TempDir()})}
	path := filepath.Join(root, "a", "b.txt")
	require.NoError(t, e.change("a/b.txt", []byte("one")))
	if err := os.Symlink(filepath.Join("a", "b.txt"), filepath.Join(root, "link")); err != nil {
		t.Skipf("NOT RUN: no links here: %v", err)
	}
	require.NoError(t, e.change("link", []byte("two")))
	require.NoError(t, e.change("a/b.txt", []byte("three")))
	for _, want := range []string{"two", "one"} {
		require.NoError(t, e.change("link", nil))
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(content))
	}
	require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o644))
	requireCode(t, toolerr.Stale, e.change("link", nil))
	require.NoError(t, os.WriteFile(path, []byte("one"), 0o644))
	require.NoError(t, e.change("link", nil))
	require.NoFileExists(t, path, "it was made by the first change")
	requireCode(t, toolerr.NotFound, e.change("a/b.txt", nil))
}
