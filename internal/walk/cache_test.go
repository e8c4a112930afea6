//go:build linux

package walk_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// grain is longer than the kernel's clock ticks.
const grain = 25 * time.Millisecond

// TestCacheIsNeverStale changes a tree at random between walks: a walk with a
// cache must find the same entries as one without.
func TestCacheIsNeverStale(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	root := t.TempDir()
	f := bushy(60)
	f["d1/.gitignore"] = "file1*\n"
	f[".git/"] = ""
	f.write(t, root)
	cache := walk.NewCache(1 << 20).WithGrain(grain)
	both := func(round int) {
		want, _ := collect(t, start(t, root, ".", walk.Options{Hidden: true}), anything)
		got, report := collect(t, start(t, root, ".", walk.Options{Hidden: true, Cache: cache}), anything)
		require.Equal(t, want, got, "round %d", round)
		require.Zero(t, report.Unreadable)
	}
	used := 0
	rounds := 60
	if mcpkittest.RaceEnabled {
		rounds = 20
	}
	for round := range rounds {
		both(round)
		if round%2 == 0 {
			time.Sleep(grain + grain/4)
			both(round)
			dirs, bytes := cache.Held()
			require.Equal(t, bytes, cache.Size())
			used += dirs
		}
		for range 1 + r.IntN(4) {
			disturb(t, r, root)
		}
	}
	require.NotZero(t, used, "the cache was in use")
}

// disturb changes a tree, and sometimes hides the change by restoring the
// directory's modification time.
func disturb(t *testing.T, r *rand.Rand, root string) {
	dirs, err := filepath.Glob(filepath.Join(root, "d*"))
	require.NoError(t, err)
	deeper, err := filepath.Glob(filepath.Join(root, "d*", "*", "f*"))
	require.NoError(t, err)
	dirs = append(append(dirs, deeper...), root)
	dir := dirs[r.IntN(len(dirs))]
	before, err := os.Stat(dir)
	require.NoError(t, err)
	if !before.IsDir() {
		return
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	name := filepath.Join(dir, fmt.Sprintf("new%d", r.IntN(5)))
	switch what := r.IntN(6); {
	case what == 0:
		require.NoError(t, os.RemoveAll(name))
		require.NoError(t, os.WriteFile(name, nil, 0o644))
	case what == 1:
		require.NoError(t, os.RemoveAll(name))
		require.NoError(t, os.MkdirAll(filepath.Join(name, "sub"), 0o755))
	case what == 2 && dir != root && len(entries) > 0:
		victim := entries[r.IntN(len(entries))]
		require.NoError(t, os.RemoveAll(filepath.Join(dir, victim.Name())))
	case what == 3 && dir != root && len(entries) > 0:
		require.NoError(t, os.RemoveAll(name))
		require.NoError(t, os.Rename(filepath.Join(dir, entries[r.IntN(len(entries))].Name()), name))
	case what == 4 && dir != root: // replace the directory by another
		aside := filepath.Join(t.TempDir(), "aside")
		require.NoError(t, os.Rename(dir, aside))
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "fresh"), nil, 0o644))
		require.NoError(t, os.RemoveAll(aside))
	case what == 5:
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), fmt.Appendf(nil, "new%d\nfile%d*\n", r.IntN(5), r.IntN(9)), 0o644))
	}
	if r.IntN(3) == 0 {
		require.NoError(t, os.Chtimes(dir, before.ModTime(), before.ModTime()))
	}
}

func TestCacheIsUsedFromTheSecondWalkOn(t *testing.T) {
	root := t.TempDir()
	bushy(50).write(t, root)
	time.Sleep(grain)
	cache := walk.NewCache(1 << 20).WithGrain(grain)
	walkOnce := func() int {
		collect(t, start(t, root, ".", walk.Options{Cache: cache}), anything)
		dirs, _ := cache.Held()
		return dirs
	}
	require.Zero(t, walkOnce())
	require.Equal(t, 7+35+50+1, walkOnce())
	require.Equal(t, 7+35+50+1, walkOnce())
}

func TestCacheForgetsWhatIsRecent(t *testing.T) {
	root := t.TempDir()
	bushy(5).write(t, root)
	cache := walk.NewCache(1 << 20)
	for range 3 {
		collect(t, start(t, root, ".", walk.Options{Cache: cache}), anything)
	}
	dirs, _ := cache.Held()
	require.Zero(t, dirs, "the directories were changed within the last two seconds")
}

func TestCacheIsBounded(t *testing.T) {
	root := t.TempDir()
	bushy(300).write(t, root)
	time.Sleep(grain)
	const most = 20_000
	cache := walk.NewCache(most).WithGrain(grain)
	want, _ := collect(t, start(t, root, ".", walk.Options{}), anything)
	for range 4 {
		got, _ := collect(t, start(t, root, ".", walk.Options{Cache: cache}), anything)
		require.Equal(t, want, got)
		dirs, bytes := cache.Held()
		require.LessOrEqual(t, bytes, most)
		require.Equal(t, bytes, cache.Size())
		if dirs > 0 {
			require.NotZero(t, bytes)
		}
	}
}
