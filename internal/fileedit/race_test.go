package fileedit_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestParallelWritersLoseNothing: several rewriters, with shared state,
// separate state and without state, each add lines; every line is in the file
// once.
func TestParallelWritersLoseNothing(t *testing.T) {
	f := newFixture(t)
	f.put("log", "")
	require.NoError(t, os.Symlink("log", f.file("link")))
	rewriters := []*fileedit.Rewriter{
		f.Rewriter, f.Rewriter,
		{Store: state.New(state.Config{Dir: t.TempDir()}), Tool: "other"},
		{Store: state.New(state.Config{Disabled: true}), Tool: "none"},
	}
	const each = 25
	errs := make([]error, len(rewriters))
	var group sync.WaitGroup
	for i, r := range rewriters {
		group.Go(func() {
			for n := range each {
				line := fmt.Sprintf("writer %d line %d\n", i, n)
				_, err := r.Rewrite(context.Background(), f.fs, []string{"log", "link"}[i%2], fileedit.Options{}, func(b *fileedit.Before) (*fileedit.After, error) {
					end := len(b.Content)
					return fileedit.Splice(b.Content, []textdiff.Change{{Start: end, End: end, New: line}}), nil
				})
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	got := f.content("log")
	require.Equal(t, len(rewriters)*each, strings.Count(got, "\n"))
	for i := range rewriters {
		for n := range each {
			require.Equal(t, 1, strings.Count(got, fmt.Sprintf("writer %d line %d\n", i, n)))
		}
	}
}

// TestSomebodyElseIsFaster: an editor does not take the locks. When it saves
// during a change, the change is decided once more and never overwrites the
// editor's version.
func TestSomebodyElseIsFaster(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.put("a.txt", "one\n")
	times := 0
	add := func(b *fileedit.Before) (*fileedit.After, error) {
		return fileedit.Whole(append(bytes.Clone(b.Content), "ours\n"...)), nil
	}
	_, err := f.Rewrite(ctx, f.fs, "a.txt", fileedit.Options{}, func(b *fileedit.Before) (*fileedit.After, error) {
		if times++; times == 1 {
			f.put("a.txt", "theirs\n")
		}
		return add(b)
	})
	require.NoError(t, err)
	require.Equal(t, 2, times)
	require.Equal(t, "theirs\nours\n", f.content("a.txt"))

	// An editor that never stops saving is reported, and its last version
	// stays.
	times = 0
	_, err = f.Rewrite(ctx, f.fs, "a.txt", fileedit.Options{}, func(b *fileedit.Before) (*fileedit.After, error) {
		times++
		f.put("a.txt", fmt.Sprintf("theirs %d\n", times))
		return add(b)
	})
	require.Equal(t, toolerr.Stale, toolerr.CodeOf(err), "%v", err)
	require.Equal(t, fmt.Sprintf("theirs %d\n", times), f.content("a.txt"))

	// The same holds for a file that appears and for a file that is removed.
	_, err = f.Rewrite(ctx, f.fs, "dir/new.txt", fileedit.Options{}, func(b *fileedit.Before) (*fileedit.After, error) {
		if !b.Exists {
			f.put("dir/new.txt", "theirs\n")
		}
		return add(b)
	})
	require.NoError(t, err)
	require.Equal(t, "theirs\nours\n", f.content("dir/new.txt"))
	_, err = f.Rewrite(ctx, f.fs, "a.txt", fileedit.Options{}, func(b *fileedit.Before) (*fileedit.After, error) {
		if b.Exists {
			require.NoError(t, os.Remove(f.file("a.txt")))
		}
		return fileedit.Whole([]byte("ours\n")), nil
	})
	require.NoError(t, err)
	require.Equal(t, "ours\n", f.content("a.txt"))
}

// TestFailuresLeaveNothing: if a change fails for any reason, the file, its
// directory and the journal are unchanged.
func TestFailuresLeaveNothing(t *testing.T) {
	f := newFixture(t)
	f.put("a.txt", "one\n")
	f.whole("a.txt", "two\n")
	cancelled, cancel := context.WithCancel(context.Background())
	for name, try := range map[string]func() error{
		"refused by the tool": func() error {
			_, err := f.Rewrite(context.Background(), f.fs, "new/dir/b.txt", fileedit.Options{}, func(*fileedit.Before) (*fileedit.After, error) {
				return nil, toolerr.New(toolerr.NoMatch, "no")
			})
			return err
		},
		"cancelled": func() error {
			_, err := f.Rewrite(cancelled, f.fs, "new/dir/b.txt", fileedit.Options{}, func(*fileedit.Before) (*fileedit.After, error) {
				cancel()
				return fileedit.Whole([]byte("x")), nil
			})
			return err
		},
		"too large": func() error {
			_, err := f.Rewrite(context.Background(), f.fs, "a.txt", fileedit.Options{}, func(*fileedit.Before) (*fileedit.After, error) {
				return fileedit.Whole(make([]byte, fileedit.MaxSize+1)), nil
			})
			return err
		},
		"outside": func() error {
			_, err := f.Rewrite(context.Background(), f.fs, "../b.txt", fileedit.Options{}, func(*fileedit.Before) (*fileedit.After, error) {
				t.Error("must not be asked")
				return nil, nil
			})
			return err
		},
	} {
		require.Error(t, try(), name)
		require.Equal(t, "two\n", f.content("a.txt"), name)
		entries, err := os.ReadDir(f.root)
		require.NoError(t, err)
		require.Len(t, entries, 1, name)
	}
	pending, err := filepath.Glob(filepath.Join(f.state, "undo-1", "*.pending"))
	require.NoError(t, err)
	require.Empty(t, pending)
	done, err := f.Undo(context.Background(), f.fs, "a.txt", fileedit.Options{})
	require.NoError(t, err, "the last change can still be undone")
	require.Equal(t, "two\n", string(done.Before.Content))
	require.Equal(t, "one\n", f.content("a.txt"))
}

// TestUndoOnlyOfWhatWasWritten: undo does not touch a file that somebody has
// changed since, and dry runs write nothing.
func TestUndoOnlyOfWhatWasWritten(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.put("a.txt", "one\n")
	f.whole("a.txt", "two\n")
	done, err := f.Undo(ctx, f.fs, "a.txt", fileedit.Options{DryRun: true})
	require.NoError(t, err)
	require.True(t, done.DryRun)
	require.Equal(t, "two\n", f.content("a.txt"))
	f.put("a.txt", "three\n")
	_, err = f.Undo(ctx, f.fs, "a.txt", fileedit.Options{})
	require.Equal(t, toolerr.Stale, toolerr.CodeOf(err))
	require.Equal(t, "three\n", f.content("a.txt"))
	f.put("a.txt", "two\n")
	done, err = f.Undo(ctx, f.fs, "a.txt", fileedit.Options{})
	require.NoError(t, err)
	require.Equal(t, "test", done.Undone.Tool)
	require.Equal(t, "one\n", f.content("a.txt"))

	f.whole("new/b.txt", "x\n")
	done, err = f.Undo(ctx, f.fs, "new/b.txt", fileedit.Options{DryRun: true})
	require.NoError(t, err)
	require.True(t, done.Removed)
	require.FileExists(t, f.file("new/b.txt"))

	// Without a store, everything else works.
	off := &fileedit.Rewriter{Store: state.New(state.Config{Disabled: true}), Tool: "test"}
	done, err = off.Rewrite(ctx, f.fs, "a.txt", fileedit.Options{}, func(*fileedit.Before) (*fileedit.After, error) {
		return fileedit.Whole([]byte("four\n")), nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"no undo: no state is kept (--no-state)"}, done.Notes())
}

// TestSameContentIsNotWritten: even the file's times stay unchanged.
func TestSameContentIsNotWritten(t *testing.T) {
	f := newFixture(t)
	f.put("a.txt", "one\ntwo\n")
	before, err := os.Stat(f.file("a.txt"))
	require.NoError(t, err)
	require.True(t, f.whole("a.txt", "one\ntwo\n").Unchanged)
	require.True(t, f.splice("a.txt", textdiff.Change{Start: 4, End: 7, New: "two"}).Unchanged)
	after, err := os.Stat(f.file("a.txt"))
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
	require.Equal(t, before.ModTime(), after.ModTime())
	_, err = f.Undo(context.Background(), f.fs, "a.txt", fileedit.Options{})
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err), "there is nothing to undo")
}
