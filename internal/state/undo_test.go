package state_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// record records a change and commits it.
func record(t *testing.T, store *state.Store, c state.Change) {
	t.Helper()
	pending, err := store.RecordChange(c)
	require.NoError(t, err)
	require.NoError(t, pending.Commit())
}

func requireCode(t *testing.T, want toolerr.Code, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want, toolerr.CodeOf(err), "%v", err)
}

func TestUndoGoesBackChangeByChange(t *testing.T) {
	dir := t.TempDir()
	store := state.New(state.Config{Dir: dir})
	path := "/srv/caf\xe9/a file" // not UTF-8
	versions := []string{"", "one\n", "one\ntwo\n", "one\n2\n", "", "completely different"}
	for i := 1; i < len(versions); i++ {
		c := state.NewChange("edit", path, []byte(versions[i-1]), []byte(versions[i]))
		c.Created = i == 1
		c.Mode = 0o640
		record(t, store, c)
	}
	record(t, store, state.NewChange("edit", "/srv/other", []byte("a"), []byte("b")))
	now := []byte(versions[len(versions)-1])
	for i := len(versions) - 1; i > 0; i-- {
		// Another process, at another time.
		c, err := state.New(state.Config{Dir: dir}).LastChange(path, state.VersionOf(now))
		require.NoError(t, err)
		require.Equal(t, "edit", c.Tool)
		require.Equal(t, path, c.Path)
		require.Equal(t, fs.FileMode(0o640), c.Mode)
		require.Equal(t, i == 1, c.Created)
		_, err = c.Restore([]byte("something else"))
		requireCode(t, toolerr.Stale, err)
		before, err := c.Restore(now)
		require.NoError(t, err)
		require.Equal(t, versions[i-1], string(before))
		require.NoError(t, c.Forget())
		now = before
	}
	_, err := store.LastChange(path, state.VersionOf(now))
	requireCode(t, toolerr.NotFound, err)
	_, err = store.LastChange("/srv/never", state.VersionOf(now))
	requireCode(t, toolerr.NotFound, err)
}

// Any change of any content can be undone exactly, and the record of a small
// change is small.
func TestUndoRestoresAnything(t *testing.T) {
	store := state.New(state.Config{Dir: t.TempDir()})
	random := rand.New(rand.NewPCG(7, 11))
	pick := func(n int) []byte {
		b := make([]byte, random.IntN(n))
		for i := range b {
			b[i] = "ab\n\x00\xff"[random.IntN(5)]
		}
		return b
	}
	for i := range 300 {
		before := pick(20_000)
		at := random.IntN(len(before) + 1)
		end := at + random.IntN(len(before)-at+1)
		after := append(append(bytes.Clone(before[:at]), pick(50)...), before[end:]...)
		path := fmt.Sprintf("/f%d", i)
		c := state.NewChange("edit", path, before, after)
		require.LessOrEqual(t, len(c.Removed), end-at)
		record(t, store, c)
		found, err := store.LastChange(path, state.VersionOf(after))
		require.NoError(t, err)
		restored, err := found.Restore(after)
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, restored))
	}
}

func TestUndoOnlyWhatWasWritten(t *testing.T) {
	store := state.New(state.Config{Dir: t.TempDir()})
	a, b, c := []byte("a\n"), []byte("b\n"), []byte("c\n")
	record(t, store, state.NewChange("edit", "/f", a, b))

	// Neither a failed change nor a change interrupted before it was made
	// hides the previous change.
	failed, err := store.RecordChange(state.NewChange("replace", "/f", b, c))
	require.NoError(t, err)
	failed.Discard()
	crashed, err := store.RecordChange(state.NewChange("replace", "/f", b, c))
	require.NoError(t, err)
	require.NotNil(t, crashed)
	found, err := store.LastChange("/f", state.VersionOf(b))
	require.NoError(t, err)
	require.Equal(t, "edit", found.Tool)

	// A change that was interrupted after it was made can be undone.
	found, err = store.LastChange("/f", state.VersionOf(c))
	require.NoError(t, err)
	require.Equal(t, "replace", found.Tool)

	// Content written by somebody else is not touched, even if an older change
	// of ours matches it.
	require.NoError(t, crashed.Commit())
	_, err = store.LastChange("/f", state.VersionOf([]byte("theirs")))
	requireCode(t, toolerr.Stale, err)
	require.ErrorContains(t, err, "replace")
	_, err = store.LastChange("/f", state.VersionOf(b))
	requireCode(t, toolerr.Stale, err)

	var none *state.PendingChange
	none.Discard()
	require.NoError(t, none.Commit())
}

// TestUndoIsKilled: an undo that is killed, before or after it restores the
// file, leaves a journal with which another undo can continue.
func TestUndoIsKilled(t *testing.T) {
	dir := t.TempDir()
	store := state.New(state.Config{Dir: dir})
	a, b, c := []byte("a\n"), []byte("b\n"), []byte("c\n")
	record(t, store, state.NewChange("edit", "/f", a, b))
	record(t, store, state.NewChange("replace", "/f", b, c))
	found, err := store.LastChange("/f", state.VersionOf(c))
	require.NoError(t, err)
	require.NotNil(t, found.Reopen())

	store = state.New(state.Config{Dir: dir})
	found, err = store.LastChange("/f", state.VersionOf(c))
	require.NoError(t, err, "before")
	require.Equal(t, "replace", found.Tool)
	found, err = store.LastChange("/f", state.VersionOf(b))
	require.NoError(t, err, "after")
	require.Equal(t, "edit", found.Tool)

	// A failed undo has no effect.
	found, err = store.LastChange("/f", state.VersionOf(c))
	require.NoError(t, err)
	require.NoError(t, found.Reopen().Commit())
	_, err = store.LastChange("/f", state.VersionOf(b))
	requireCode(t, toolerr.Stale, err)
	found, err = store.LastChange("/f", state.VersionOf(c))
	require.NoError(t, err)
	found.Reopen()
	require.NoError(t, found.Forget())
	_, err = store.LastChange("/f", state.VersionOf(c))
	requireCode(t, toolerr.Stale, err)
}

func TestChangesSinceATime(t *testing.T) {
	store := state.New(state.Config{Dir: t.TempDir()})
	record(t, store, state.NewChange("edit", "/before", []byte("a"), []byte("b")))
	since := time.Now()
	require.Empty(t, store.Changes(since))
	for i, path := range []string{"/f", "/g", "/f"} {
		record(t, store, state.NewChange("replace", path, fmt.Appendf(nil, "%d", i), fmt.Appendf(nil, "%d", i+1)))
	}
	failed, err := store.RecordChange(state.NewChange("edit", "/h", nil, []byte("x")))
	require.NoError(t, err)
	failed.Discard()
	var paths []string
	for _, c := range store.Changes(since) {
		paths = append(paths, c.Path)
		require.Equal(t, "replace", c.Tool)
	}
	require.Equal(t, []string{"/f", "/g", "/f"}, paths)
	require.Equal(t, state.VersionOf([]byte("3")), store.Changes(since)[0].After)
	require.NoError(t, store.Changes(since)[0].Forget())
	require.Len(t, store.Changes(since), 2)
	require.Len(t, store.Changes(time.Time{}.Add(time.Hour)), 3, "a time before all others")
	require.Empty(t, state.New(state.Config{Disabled: true}).Changes(since))
}

func TestNoUndoHasAReason(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 2000)
	_, err := state.New(state.Config{Disabled: true}).RecordChange(state.NewChange("edit", "/f", large, nil))
	require.ErrorContains(t, err, "--no-state")
	store := state.New(state.Config{Dir: t.TempDir(), UndoContent: 1000})
	_, err = store.RecordChange(state.NewChange("edit", "/f", large, nil))
	require.ErrorContains(t, err, "2000 bytes")
	record(t, store, state.NewChange("edit", "/f", large, large[1:]))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = state.New(state.Config{Dir: filepath.Join(file, "sub")}).RecordChange(state.NewChange("edit", "/f", large, nil))
	require.ErrorContains(t, err, "state directory")
	_, err = state.New(state.Config{Disabled: true}).LastChange("/f", state.VersionOf(nil))
	requireCode(t, toolerr.NotFound, err)
}

// A damaged, truncated or foreign record is ignored.
func TestDamagedUndoIsNone(t *testing.T) {
	dir := t.TempDir()
	store := state.New(state.Config{Dir: dir})
	before := bytes.Repeat([]byte("some text that was there before\n"), 10_000)
	after := []byte("x")
	record(t, store, state.NewChange("edit", "/f", before, after))
	path := files(t, dir)[0]
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
		info, err = os.Stat(filepath.Dir(path))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	}
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Less(t, len(good), len(before)/4, "large content is compressed")
	found, err := store.LastChange("/f", state.VersionOf(after))
	require.NoError(t, err)
	restored, err := found.Restore(after)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, restored))
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for _, bad := range [][]byte{nil, good[:10], good[:len(good)-1], append(bytes.Clone(good), 0), flipped, []byte("0\n{}\n")} {
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		_, err := store.LastChange("/f", state.VersionOf(after))
		requireCode(t, toolerr.NotFound, err)
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err = store.LastChange("/f", state.VersionOf(after))
	requireCode(t, toolerr.NotFound, err)
	record(t, store, state.NewChange("edit", "/f", before, after))
	_, err = store.LastChange("/f", state.VersionOf(after))
	require.NoError(t, err)
}

// The journal stays bounded in bytes, age and changes per file, whoever writes
// it: here, processes that make one change each.
func TestUndoJournalIsBounded(t *testing.T) {
	dir := t.TempDir()
	const limit = 1 << 20
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	for i := range 300 {
		store := state.New(state.Config{Dir: dir, UndoBytes: limit})
		record(t, store, state.NewChange("edit", fmt.Sprintf("/f%d", i), noise(40<<10), nil))
	}
	var total int64
	for _, path := range files(t, dir) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		total += info.Size()
	}
	require.LessOrEqual(t, total, int64(limit*3/2))
	require.NotZero(t, total)
	last, err := state.New(state.Config{Dir: dir}).LastChange("/f299", state.VersionOf(nil))
	require.NoError(t, err)
	require.Len(t, last.Removed, 40<<10)

	store := state.New(state.Config{Dir: dir})
	for i := range 50 {
		record(t, store, state.NewChange("edit", "/often", fmt.Appendf(nil, "%d", i), fmt.Appendf(nil, "%d", i+1)))
	}
	for i := 50; i > 50-16; i-- {
		c, err := store.LastChange("/often", state.VersionOf(fmt.Appendf(nil, "%d", i)))
		require.NoError(t, err)
		require.NoError(t, c.Forget())
	}
	_, err = store.LastChange("/often", state.VersionOf([]byte("34")))
	requireCode(t, toolerr.NotFound, err)

	old := state.NewChange("edit", "/old", []byte("a"), []byte("b"))
	old.Time = time.Now().Add(-8 * 24 * time.Hour)
	record(t, store, old)
	_, err = store.LastChange("/old", state.VersionOf([]byte("b")))
	requireCode(t, toolerr.NotFound, err)
}

// Many concurrent changes, of one file and of several, leave only complete
// records.
func TestUndoJournalIsSharedSafely(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	errs := make(chan error, 16*20)
	for i := range 16 {
		group.Go(func() {
			store := state.New(state.Config{Dir: dir})
			for j := range 20 {
				content := fmt.Appendf(nil, "%d %d", i, j)
				pending, err := store.RecordChange(state.NewChange("edit", fmt.Sprintf("/f%d", i%4), content, nil))
				if err == nil {
					err = pending.Commit()
				}
				errs <- err
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		// Another goroutine may already have removed the record because of the
		// limit.
		if err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
	}
	store := state.New(state.Config{Dir: dir})
	for i := range 4 {
		c, err := store.LastChange(fmt.Sprintf("/f%d", i), state.VersionOf(nil))
		require.NoError(t, err)
		require.NotEmpty(t, c.Removed)
	}
	for _, path := range files(t, dir) {
		require.NotEqual(t, "aside", filepath.Base(filepath.Dir(path)))
	}
}
