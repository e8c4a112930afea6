package fileedit_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// fixture is a root directory with a rewriter.
type fixture struct {
	*fileedit.Rewriter
	t     *testing.T
	root  string
	state string
	fs    *sandbox.FS
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	fs, err := sandbox.New(sandbox.Config{Roots: []string{root}}).FS(context.Background())
	require.NoError(t, err)
	dir := t.TempDir()
	return &fixture{Rewriter: &fileedit.Rewriter{Store: state.New(state.Config{Dir: dir}), Tool: "test"}, t: t, root: root, state: dir, fs: fs}
}

func (f *fixture) file(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

func (f *fixture) put(name, content string) {
	f.t.Helper()
	require.NoError(f.t, os.MkdirAll(filepath.Dir(f.file(name)), 0o755))
	require.NoError(f.t, os.WriteFile(f.file(name), []byte(content), 0o644))
}

func (f *fixture) content(name string) string {
	f.t.Helper()
	data, err := os.ReadFile(f.file(name))
	require.NoError(f.t, err)
	return string(data)
}

// whole replaces a file's content.
func (f *fixture) whole(name, content string) *fileedit.Outcome {
	f.t.Helper()
	done, err := f.Rewrite(context.Background(), f.fs, name, fileedit.Options{}, func(*fileedit.Before) (*fileedit.After, error) {
		return fileedit.Whole([]byte(content)), nil
	})
	require.NoError(f.t, err)
	return done
}

// splice replaces a part of a file.
func (f *fixture) splice(name string, changes ...textdiff.Change) *fileedit.Outcome {
	f.t.Helper()
	done, err := f.Rewrite(context.Background(), f.fs, name, fileedit.Options{}, func(b *fileedit.Before) (*fileedit.After, error) {
		return fileedit.Splice(b.Content, changes), nil
	})
	require.NoError(f.t, err)
	return done
}

func TestCreateChangeAndUndo(t *testing.T) {
	f := newFixture(t)
	done := f.whole("a/b/new.txt", "one\ntwo\n")
	require.True(t, done.Created)
	require.Equal(t, []string{"created the directories a, a/b"}, done.Notes())
	require.EqualValues(t, 2, done.Index.Lines)

	done = f.splice("a/b/new.txt", textdiff.Change{Start: 4, End: 7, New: "2"})
	require.False(t, done.Created)
	require.Empty(t, done.Notes())
	require.Equal(t, "one\n2\n", f.content("a/b/new.txt"))
	require.True(t, done.Before.IsSeenVersion(), "what we wrote ourselves is known")

	ctx := context.Background()
	_, err := f.Undo(ctx, f.fs, "a/b/new.txt", fileedit.Options{})
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", f.content("a/b/new.txt"))
	done, err = f.Undo(ctx, f.fs, "a/b/new.txt", fileedit.Options{})
	require.NoError(t, err)
	require.True(t, done.Removed)
	require.NoFileExists(t, f.file("a/b/new.txt"))
	_, err = f.Undo(ctx, f.fs, "a/b/new.txt", fileedit.Options{})
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
}
