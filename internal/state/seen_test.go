package state_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// sample returns a record of data, as last changed an hour ago.
func sample(t testing.TB, path string, data []byte) state.Seen {
	t.Helper()
	x, err := textfile.Scan(context.Background(), bytes.NewReader(data), int64(len(data)), textfile.Options{})
	require.NoError(t, err)
	past := time.Now().Add(-time.Hour)
	stat := sandbox.Stat{Size: int64(len(data)), ModTime: past, ChangeTime: past, Dev: 5, Ino: 7}
	return state.Seen{Path: path, Stamp: state.StampOf(stat, time.Now()), Index: *x}
}

func sums(first, last int64) state.Range {
	r := state.Range{First: first, Last: last}
	for n := first; n <= last; n++ {
		r.Sums = append(r.Sums, uint32(n)*2654435761)
	}
	return r
}

func files(t testing.TB, dir string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".pruned") {
			found = append(found, path)
		}
		return err
	}))
	return found
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	for _, data := range [][]byte{
		nil, []byte("a\r\nb"), bytes.Repeat([]byte("a line of a large file\n"), 500_000),
	} {
		want := sample(t, "/srv/dir/file", data)
		if want.Index.Lines > 0 {
			want.Ranges = []state.Range{sums(1, min(want.Index.Lines, 2000))}
		}
		require.NoError(t, state.New(state.Config{Dir: dir}).Remember(want))
		got, ok := state.New(state.Config{Dir: dir}).SeenWithStamp(want.Path, want.Stamp)
		require.True(t, ok)
		if len(data) <= textfile.LineIndexMin {
			want.Index.LinesBefore, want.Index.Stride = nil, 0
		}
		require.Equal(t, &want, got)
	}
	if runtime.GOOS != "windows" {
		for _, path := range files(t, dir) {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), path)
			info, err = os.Stat(filepath.Dir(path))
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), path)
		}
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	}
}

func TestChangedFilesAreNotCurrent(t *testing.T) {
	store := state.New(state.Config{Dir: t.TempDir()})
	seen := sample(t, "/f", []byte("text\n"))
	require.NoError(t, store.Remember(seen))
	for name, change := range map[string]func(*state.Stamp){
		"size": func(s *state.Stamp) { s.Size++ }, "mtime": func(s *state.Stamp) { s.ModTime++ },
		"ctime": func(s *state.Stamp) { s.ChangeTime++ }, "dev": func(s *state.Stamp) { s.Dev++ }, "ino": func(s *state.Stamp) { s.Ino++ },
	} {
		stamp := seen.Stamp
		change(&stamp)
		_, ok := store.SeenWithStamp("/f", stamp)
		require.False(t, ok, name)
	}
	later := seen.Stamp
	later.Taken += int64(time.Hour)
	_, ok := store.SeenWithStamp("/f", later)
	require.True(t, ok)
	_, ok = store.Seen("/other")
	require.False(t, ok)
}

// TestChangesWithinTheClocksGrain: two changes of the same size within one tick
// have the same times, so a stamp taken immediately proves nothing.
func TestChangesWithinTheClocksGrain(t *testing.T) {
	now := time.Unix(1_800_000_000, 123_456_789)
	at := func(changed, taken time.Time) bool {
		return state.StampOf(sandbox.Stat{ModTime: changed, ChangeTime: changed}, taken).Settled()
	}
	require.False(t, at(now, now))
	require.False(t, at(now, now.Add(state.Grain-1)))
	require.True(t, at(now, now.Add(state.Grain)))
	require.False(t, at(now.Add(time.Hour), now), "a file from the future")
	whole := now.Truncate(time.Second)
	require.False(t, at(whole, whole.Add(time.Second)))
	require.True(t, at(whole, whole.Add(2*time.Second)))
}

func TestDamagedRecordsAreAbsent(t *testing.T) {
	dir := t.TempDir()
	store := state.New(state.Config{Dir: dir})
	seen := sample(t, "/f", bytes.Repeat([]byte("a line of a large file\n"), 500_000))
	seen.Ranges = []state.Range{sums(1, 10)}
	require.NoError(t, store.Remember(seen))
	path := files(t, filepath.Join(dir, "seen-2"))[0]
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, damaged := range [][]byte{nil, whole[:10], whole[:len(whole)-1], bytes.ToUpper(whole), append(bytes.Clone(whole), 'x'), make([]byte, 2<<20)} {
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		_, ok := store.Seen("/f")
		require.False(t, ok)
	}
	require.NoError(t, store.Remember(seen))
	_, ok := store.Seen("/f")
	require.True(t, ok, "and are replaced")
}

func TestNothingIsKeptWhenDisabled(t *testing.T) {
	dir := t.TempDir()
	store := state.New(state.Config{Disabled: true, Getenv: func(string) string { return dir }})
	require.NoError(t, store.Remember(sample(t, "/f", nil)))
	require.NoError(t, store.Err())
	_, ok := store.Seen("/f")
	require.False(t, ok)
	require.Empty(t, files(t, dir))
}

func TestAnUnusableDirectoryIsNoState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	store := state.New(state.Config{Dir: filepath.Join(file, "state")})
	require.Error(t, store.Remember(sample(t, "/f", nil)))
	require.Error(t, store.Err())
	_, ok := store.Seen("/f")
	require.False(t, ok)
}

func TestOpeningIsLazy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	store := state.New(state.Config{Dir: dir})
	require.NoDirExists(t, dir)
	require.NoError(t, store.Remember(sample(t, "/f", nil)))
	require.DirExists(t, dir)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, store.Remember(sample(t, "/f", nil)), "a directory that was removed is made again")
}

func TestWhere(t *testing.T) {
	base := t.TempDir()
	for _, c := range []struct {
		env  map[string]string
		dir  string
		want string
	}{
		{map[string]string{"MCP_STATE_DIR": base + "/env", "HOME": base}, base + "/flag", "flag"},
		{map[string]string{"MCP_STATE_DIR": base + "/env", "XDG_STATE_HOME": base + "/xdg", "HOME": base}, "", "env"},
		{map[string]string{"XDG_STATE_HOME": base + "/xdg", "HOME": base}, "", "xdg/toolroom"},
		{map[string]string{"XDG_STATE_HOME": "relative", "HOME": base + "/home"}, "", "home/.local/state/toolroom"},
		{map[string]string{"HOME": base + "/tilde"}, "~/s", "tilde/s"},
	} {
		store := state.New(state.Config{Dir: c.dir, Getenv: func(name string) string { return c.env[name] }})
		require.NoError(t, store.Remember(sample(t, "/f", nil)))
		require.NotEmpty(t, files(t, filepath.Join(base, c.want)), c.want)
	}
	require.Error(t, (&state.Config{Dir: "x", Disabled: true}).Validate())
	require.NoError(t, (&state.Config{}).Validate())
}

func TestRangesAddUp(t *testing.T) {
	store := state.New(state.Config{Dir: t.TempDir()})
	data := bytes.Repeat([]byte("line\n"), 40_000)
	rng := rand.New(rand.NewPCG(3, 3))
	seenLines := map[int64]bool{}
	for range 60 {
		first := 1 + rng.Int64N(8000)
		r := sums(first, first+rng.Int64N(300))
		for n := r.First; n <= r.Last; n++ {
			seenLines[n] = true
		}
		seen := sample(t, "/f", data)
		seen.Ranges = []state.Range{r}
		require.NoError(t, store.Remember(seen))
	}
	got, ok := store.Seen("/f")
	require.True(t, ok)
	last := int64(-1)
	for _, r := range got.Ranges {
		require.Greater(t, r.First, last+1, "ranges are sorted and apart")
		require.Equal(t, sums(r.First, r.Last), r)
		for n := r.First; n <= r.Last; n++ {
			require.True(t, seenLines[n])
			delete(seenLines, n)
		}
		last = r.Last
	}
	require.Empty(t, seenLines)

	// Other content removes the ranges; a record stays bounded.
	data[0]++
	seen := sample(t, "/f", data)
	for first := int64(1); first < 40_000; first += 2000 {
		seen.Ranges = []state.Range{sums(first, first+1999)}
		require.NoError(t, store.Remember(seen))
	}
	got, ok = store.Seen("/f")
	require.True(t, ok)
	total := int64(0)
	for _, r := range got.Ranges {
		total += r.Last - r.First + 1
	}
	require.LessOrEqual(t, total, int64(20_000))
	require.EqualValues(t, 40_000, got.Ranges[len(got.Ranges)-1].Last, "the newest is kept")
}

func TestSharedByManyWriters(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			store := state.New(state.Config{Dir: dir})
			for i := range 30 {
				path := fmt.Sprintf("/file-%d", i%3)
				seen := sample(t, path, []byte(strings.Repeat("text\n", w+1)))
				if err := store.Remember(seen); err != nil {
					t.Error(err)
				}
				got, ok := store.Seen(path)
				if !ok || got.Path != path {
					t.Errorf("%s: a reader found no whole record", path)
				}
			}
		})
	}
	group.Wait()
	require.Len(t, files(t, dir), 3, "no litter")
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	config := state.Config{Dir: dir, MaxBytes: 40 << 10, MaxAge: time.Hour}
	for i := range 30 {
		require.NoError(t, state.New(config).Remember(sample(t, fmt.Sprintf("/file-%d", i), nil)))
	}
	found := files(t, dir)
	old := time.Now().Add(-2 * time.Hour)
	litter := filepath.Join(filepath.Dir(found[0]), "aside", "123") // as left by a killed process
	require.NoError(t, os.WriteFile(litter, nil, 0o600))
	for _, path := range []string{found[0], filepath.Join(filepath.Dir(found[0]), ".pruned")} {
		require.NoError(t, os.Chtimes(path, old, old))
	}
	require.NoError(t, state.New(config).Remember(sample(t, "/new", nil)))
	left := files(t, dir)
	require.LessOrEqual(t, len(left), 10)
	require.NotContains(t, left, found[0])
	require.NoFileExists(t, litter)
	_, ok := state.New(config).Seen("/new")
	require.True(t, ok)
}
