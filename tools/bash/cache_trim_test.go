//go:build linux

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Caches unused for long, or in excess of the bound, are removed, least
// recently used first; links in them do not lead out, and read-only files are
// removed as well.
func TestCachesAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "caches")
	outside := t.TempDir()
	now := time.Now()
	makeCache := func(name string, bytes int, age time.Duration) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, make([]byte, bytes), 0o600))
		for at := path; at != dir; at = filepath.Dir(at) {
			require.NoError(t, os.Chtimes(at, now.Add(-age), now.Add(-age)))
		}
	}
	left := func() (names []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}
	require.NoError(t, os.WriteFile(filepath.Join(outside, "file"), nil, 0o600))
	makeCache("old/sub/f", 10, maxCacheAge+time.Hour)
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "old", "out")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "old/sub"), 0o555))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "old"), now.Add(-maxCacheAge-time.Hour), now.Add(-maxCacheAge-time.Hour)))
	makeCache("week/f", 600_000, 7*24*time.Hour)
	makeCache("yesterday/f", 600_000, 24*time.Hour)
	makeCache("now/f", 2_000_000, time.Minute)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(outside, link))

	require.NoError(t, trimCaches(context.Background(), dir, 1<<40, now))
	require.Equal(t, []string{"now", "week", "yesterday"}, left())
	require.FileExists(t, filepath.Join(outside, "file"))
	require.NoError(t, trimCaches(context.Background(), dir, 1, now))
	require.Len(t, left(), 3, "once a day")
	require.NoError(t, trimCaches(context.Background(), dir, 2_700_000, now.Add(cacheTrimInterval)))
	require.Contains(t, left(), "now", "the last used")
	require.Contains(t, left(), "yesterday")
	require.NotContains(t, left(), "week")
	require.FileExists(t, filepath.Join(outside, "file"))
}
