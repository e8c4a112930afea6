package state_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
)

// Outputs stay bounded in size and age, and only this user can read them.
func TestSpillIsBounded(t *testing.T) {
	c := state.Config{Dir: t.TempDir(), OutputBytes: 100 << 10}
	store := state.New(c)
	roots := []string{"/a", "/b"}
	dir, err := store.MakeOutputDir(roots)
	require.NoError(t, err)
	require.Equal(t, c.OutputDir([]string{"/b", "/a", "/a"}), dir)
	other, err := store.MakeOutputDir([]string{"/a"})
	require.NoError(t, err)
	require.NotEqual(t, dir, other)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
	add := func(name string, size int, age time.Duration) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), at, at))
	}
	add("ancient", 10, 4*24*time.Hour)
	add("older", 60<<10, time.Hour)
	add("newer", 60<<10, time.Minute)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "of an earlier version"), nil, 0o600))
	require.NoError(t, os.Chtimes(filepath.Join(filepath.Dir(dir), "of an earlier version"), time.Time{}, time.Now().Add(-4*24*time.Hour)))
	long := time.Now().Add(-40 * 24 * time.Hour)
	require.NoError(t, os.Chtimes(other, long, long))
	_, err = store.MakeOutputDir(roots)
	require.NoError(t, err)
	require.NoDirExists(t, other)
	require.NoFileExists(t, filepath.Join(filepath.Dir(dir), "of an earlier version"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "newer", entries[0].Name())

	off := state.Config{Dir: c.Dir, Disabled: true}
	require.Empty(t, off.OutputDir(roots))
	_, err = state.New(off).MakeOutputDir(roots)
	require.Error(t, err)
}

// The newest records are listed, and read again only after a change.
func TestRecent(t *testing.T) {
	c := state.Config{Dir: t.TempDir()}
	store := state.New(c)
	remember := func(path string, size int64) {
		seen := state.Seen{Path: path, Stamp: state.Stamp{Size: size, Taken: time.Now().UnixNano()}}
		seen.Index.Size = size
		require.NoError(t, store.Remember(seen))
	}
	require.Empty(t, store.RecentlySeen(10, nil))
	// The order is based on the file system's clock.
	clock := filepath.Join(t.TempDir(), "clock")
	now := func() time.Time {
		require.NoError(t, os.WriteFile(clock, []byte{'.'}, 0o600))
		info, err := os.Stat(clock)
		require.NoError(t, err)
		return info.ModTime()
	}
	for i, path := range []string{"/a", "/b", "/c"} {
		remember(path, int64(i))
		for before := now(); !now().After(before); {
			time.Sleep(time.Millisecond)
		}
	}
	list := store.RecentlySeen(2, nil)
	require.Len(t, list, 2)
	require.Equal(t, "/c", list[0].Path)
	require.Equal(t, "/b", list[1].Path)
	remember("/b", 7)
	list = store.RecentlySeen(10, list)
	require.Len(t, list, 3)
	require.Equal(t, "/b", list[0].Path)
	require.EqualValues(t, 7, list[0].Stamp.Size)
	// Unchanged records are taken from the given list.
	list[1].Path = "/from the list"
	require.Equal(t, "/from the list", store.RecentlySeen(10, list)[1].Path)
}
