package sandbox_test

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// openDir opens a directory that is its own root.
func openDir(t testing.TB, path string) *sandbox.Dir {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{Roots: []string{path}}).FS(context.Background())
	require.NoError(t, err)
	d, err := box.OpenDir(".")
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func touch(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
}

func TestDirReadAll(t *testing.T) {
	root := t.TempDir()
	touch(t, root, "a", ".b", "ünï", "with space")
	require.NoError(t, os.Mkdir(filepath.Join(root, "dir"), 0o700))
	require.NoError(t, os.Symlink("a", filepath.Join(root, "link")))
	d := openDir(t, root)
	for range 2 { // from the beginning each time
		list, err := d.ReadAll(nil)
		require.NoError(t, err)
		types := map[string]fs.FileMode{}
		for _, e := range list {
			types[e.Name] = e.Type
		}
		require.Equal(t, map[string]fs.FileMode{
			"a": 0, ".b": 0, "ünï": 0, "with space": 0, "dir": fs.ModeDir, "link": fs.ModeSymlink,
		}, types)
	}
}

func TestDirReaderInPieces(t *testing.T) {
	root := t.TempDir()
	var want []string
	for i := range 3000 {
		name := fmt.Sprintf("f%04d%s", i, strings.Repeat("x", i%100))
		touch(t, root, name)
		want = append(want, "p/"+name)
	}
	slices.Sort(want)
	for _, limit := range []int{1, 7, 1000, 2999, 3000, 3001, 0} {
		d, r := openDir(t, root), sandbox.DirReader{}
		var got []string
		for done := false; !done; {
			var list []sandbox.DirEntry
			var err error
			list, done, err = r.Read(d, "p/", nil, limit)
			require.NoError(t, err)
			require.True(t, limit == 0 || len(list) <= limit)
			for _, e := range list {
				got = append(got, e.Name)
			}
		}
		slices.Sort(got)
		require.Equal(t, want, got, "limit %d", limit)
	}
}

func TestDirReaderBoundsNames(t *testing.T) {
	root := t.TempDir()
	for i := range 600 {
		touch(t, root, fmt.Sprint(i))
	}
	d, r := openDir(t, root), sandbox.DirReader{}
	prefix := strings.Repeat("deep/", 2000)
	list, done, err := r.Read(d, prefix, nil, 100_000)
	require.NoError(t, err)
	require.False(t, done)
	require.LessOrEqual(t, len(list)*len(prefix), 2<<20)
}

func TestDirOpensWithoutFollowing(t *testing.T) {
	root := t.TempDir()
	touch(t, root, "file")
	require.NoError(t, os.Mkdir(filepath.Join(root, "dir"), 0o700))
	require.NoError(t, os.Symlink("dir", filepath.Join(root, "todir")))
	require.NoError(t, os.Symlink("file", filepath.Join(root, "tofile")))
	d := openDir(t, root)

	sub, err := d.OpenDir("dir")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(d.Path(), "dir"), sub.Path())
	require.NoError(t, sub.Close())
	require.Error(t, sub.Close(), "closed twice")

	for _, name := range []string{"todir", "file", "tofile"} {
		_, err = d.OpenDir(name)
		require.Equal(t, toolerr.NotADirectory, toolerr.CodeOf(err), name)
	}
	_, err = d.OpenDir("none")
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))

	f, st, err := d.Open("file")
	require.NoError(t, err)
	require.Equal(t, int64(4), st.Size)
	require.True(t, st.Mode.IsRegular())
	require.NoError(t, f.Close())
	_, _, err = d.Open("tofile")
	require.Equal(t, toolerr.SpecialFile, toolerr.CodeOf(err))
	_, _, err = d.Open("dir")
	require.Equal(t, toolerr.IsADirectory, toolerr.CodeOf(err))

	st, err = d.Lstat("tofile")
	require.NoError(t, err)
	require.Equal(t, fs.ModeSymlink, st.Mode.Type())
	target, err := d.Readlink("tofile")
	require.NoError(t, err)
	require.Equal(t, "file", target)
}

func TestDirTakesOneComponent(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o700))
	d := openDir(t, root)
	for _, name := range []string{"", ".", "..", "a/b", "/", "a/", "../x", "a\x00b"} {
		_, err := d.OpenDir(name)
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), "%q", name)
		_, _, err = d.Open(name)
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), "%q", name)
		_, err = d.Lstat(name)
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), "%q", name)
		_, err = d.Readlink(name)
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), "%q", name)
	}
}

func TestDirReadFile(t *testing.T) {
	root := t.TempDir()
	text := strings.Repeat("line\n", 2000)
	require.NoError(t, os.WriteFile(filepath.Join(root, "f"), []byte(text), 0o600))
	touch(t, root, "g")
	d := openDir(t, root)
	buf, st, err := d.ReadFile("f", nil, int64(len(text)))
	require.NoError(t, err)
	require.Equal(t, text, string(buf))
	require.Equal(t, int64(len(text)), st.Size)
	again, _, err := d.ReadFile("g", buf, 10)
	require.NoError(t, err)
	require.Equal(t, "g", string(again))
	require.Same(t, &buf[0], &again[0], "the buffer is used again")
	_, _, err = d.ReadFile("f", nil, int64(len(text))-1)
	require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(err))
	_, _, err = d.ReadFile("none", nil, 10)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A directory stays open when it is renamed.
func TestDirKeepsItsObject(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a", "in"), 0o700))
	outside := t.TempDir()
	touch(t, outside, "secret")
	a, err := openDir(t, root).OpenDir("a")
	require.NoError(t, err)
	defer a.Close()
	require.NoError(t, os.Rename(filepath.Join(root, "a"), filepath.Join(root, "b")))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "a")))
	list, err := a.ReadAll(nil)
	require.NoError(t, err)
	require.Equal(t, []sandbox.DirEntry{{Name: "in", Type: fs.ModeDir}}, list)
	_, _, err = a.Open("secret")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// What is at hand is no other than what is not.
func TestCached(t *testing.T) {
	root := t.TempDir()
	touch(t, root, "file")
	require.NoError(t, os.Mkdir(filepath.Join(root, "dir"), 0o700))
	touch(t, filepath.Join(root, "dir"), "in")
	require.NoError(t, os.Symlink("dir", filepath.Join(root, "link")))
	d := openDir(t, root)
	for _, name := range []string{"file", "link", "none", "", ".", "..", "dir/in", "a\x00b", strings.Repeat("n", 255), strings.Repeat("n", 256), strings.Repeat("n", 5000)} {
		_, want := d.OpenDir(name)
		require.Error(t, want, "%q", name)
		_, got := d.OpenDirCached(name)
		require.Equal(t, want, got, "%q", name)
		wantStat, want := d.Lstat(name)
		gotStat, got := d.LstatCached(name)
		require.Equal(t, want, got, "%q", name)
		require.Equal(t, wantStat, gotStat, "%q", name)
	}
	plain, err := d.OpenDir("dir")
	require.NoError(t, err)
	near, err := d.OpenDirCached("dir")
	require.NoError(t, err)
	require.Equal(t, plain.Path(), near.Path())
	want, err := plain.Stat()
	require.NoError(t, err)
	got, err := near.Stat()
	require.NoError(t, err)
	require.Equal(t, want, got)
	list, err := near.ReadAll(nil)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, plain.Close())
	require.NoError(t, near.Close())
	require.ErrorIs(t, near.Close(), fs.ErrClosed)
	_, want2 := plain.Stat()
	_, got2 := near.Stat()
	require.Error(t, want2)
	require.Equal(t, want2, got2)
}

// Files are in the order of their times in every year that a file system has.
func TestModNanoIsInOrder(t *testing.T) {
	last := int64(math.MinInt64)
	for _, year := range []int{1, 1601, 1677, 1679, 1969, 1970, 2026, 2261, 2263, 2446, 30828} {
		now := sandbox.Stat{ModTime: time.Date(year, 6, 1, 0, 0, 0, 1, time.UTC)}.ModNano()
		require.GreaterOrEqual(t, now, last, year)
		require.Equal(t, year < 1970, now < 0, year)
		last = now
	}
	when := time.Date(2026, 1, 1, 0, 0, 0, 42, time.UTC)
	require.Equal(t, when.UnixNano(), sandbox.Stat{ModTime: when}.ModNano())
}
