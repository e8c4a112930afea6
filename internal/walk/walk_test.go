package walk_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// bushy returns a tree of n files in directories of different depths.
func bushy(n int) files {
	f := files{}
	for i := range n {
		f[fmt.Sprintf("d%d/e%d/f%d/file%d", i%7, i%5, i%3, i)] = ""
		f[fmt.Sprintf("d%d/file%d", i%7, i)] = ""
	}
	return f
}

func TestWalkVisitsEverythingOnce(t *testing.T) {
	root := t.TempDir()
	f := bushy(500)
	f.write(t, root)
	for _, workers := range []int{0, 1, 2, 5, 16} {
		seen, report := collect(t, start(t, root, ".", walk.Options{Workers: workers}), regular)
		require.Equal(t, f.paths(), seen)
		require.Equal(t, len(seen), report.Files)
		require.Equal(t, 7+35+105, report.Dirs)
		require.False(t, report.Partial)
	}
}

func TestWalkEntry(t *testing.T) {
	root := t.TempDir()
	files{"a/b/c": "12345", "a/l": "-> b"}.write(t, root)
	node := start(t, root, ".", walk.Options{Workers: 1})
	var got []string
	_, err := walk.Walk(context.Background(), node, func(worker int, e *walk.Entry) error {
		require.Zero(t, worker)
		st, err := e.Lstat()
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%d %s %s %v", e.Depth, e.Path, e.Name, st.Mode.Type()))
		if e.Name == "c" {
			text, _, err := e.Dir.ReadFile(e.Name, nil, 10)
			require.NoError(t, err)
			require.Equal(t, "12345", string(text))
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"1 a a d---------", "2 a/b b d---------", "2 a/l l L---------", "3 a/b/c c ----------"}, got)
}

func TestWalkNeverFollowsLinks(t *testing.T) {
	root := t.TempDir()
	files{"a/f": "", "a/up": "-> ..", "loop": "-> loop", "abs": "-> " + root, "none": "-> nowhere"}.write(t, root)
	seen, report := collect(t, start(t, root, ".", walk.Options{}), anything)
	require.Equal(t, []string{"a", "a/f", "a/up", "abs", "loop", "none"}, seen)
	require.Zero(t, report.Unreadable)
}

// A directory that is replaced by a link before it is entered, or vanishes, is
// reported and not followed.
func TestWalkReportsWhatItCannotEnter(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	files{"keep/f": "", "link/f": "", "lost/f": ""}.write(t, root)
	files{"secret": ""}.write(t, outside)
	var seen []string
	report, err := walk.Walk(context.Background(), start(t, root, ".", walk.Options{Workers: 1}), func(_ int, e *walk.Entry) error {
		seen = append(seen, e.Path)
		switch e.Path {
		case "link":
			require.NoError(t, os.RemoveAll(filepath.Join(root, "link")))
			require.NoError(t, os.Symlink(outside, filepath.Join(root, "link")))
		case "lost":
			require.NoError(t, os.RemoveAll(filepath.Join(root, "lost")))
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"keep", "link", "lost", "keep/f"}, seen)
	require.Equal(t, 2, report.Unreadable)
	require.Equal(t, "link", report.UnreadableDirs[0].Path)
	require.Equal(t, toolerr.NotADirectory, toolerr.CodeOf(report.UnreadableDirs[0].Err))
	require.Equal(t, "lost", report.UnreadableDirs[1].Path)
	require.ErrorIs(t, report.UnreadableDirs[1].Err, fs.ErrNotExist)
	require.False(t, report.Partial)
}

func TestWalkOptions(t *testing.T) {
	root := t.TempDir()
	files{
		".gitignore": "*.log\n/out/\n", ".git/config": "", "a.log": "", "b.go": "", ".env": "",
		"out/x/y": "", "sub/c.log": "", "sub/d.go": "", "sub/deep/e.go": "",
	}.write(t, root)
	cases := map[string]struct {
		opts walk.Options
		want string
	}{
		"default":  {walk.Options{}, "b.go sub sub/d.go sub/deep sub/deep/e.go"},
		"hidden":   {walk.Options{Hidden: true}, ".env .gitignore b.go sub sub/d.go sub/deep sub/deep/e.go"},
		"all":      {walk.Options{NoIgnore: true}, "a.log b.go out out/x out/x/y sub sub/c.log sub/d.go sub/deep sub/deep/e.go"},
		"marked":   {walk.Options{ShowIgnored: true}, "!a.log b.go !out sub !sub/c.log sub/d.go sub/deep sub/deep/e.go"},
		"shallow":  {walk.Options{MaxDepth: 1}, "b.go sub"},
		"two deep": {walk.Options{MaxDepth: 2}, "b.go sub sub/d.go sub/deep"},
		"pruned":   {walk.Options{Prune: func(dir string) bool { return dir == "sub/deep" }}, "b.go sub sub/d.go sub/deep"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.opts.Workers = 1
			node := start(t, root, ".", c.opts)
			var seen []string
			report, err := walk.Walk(context.Background(), node, func(_ int, e *walk.Entry) error {
				mark := ""
				if e.Ignored {
					mark = "!"
				}
				seen = append(seen, mark+e.Path)
				return nil
			})
			require.NoError(t, err)
			slices.SortFunc(seen, func(a, b string) int {
				return strings.Compare(strings.TrimPrefix(a, "!"), strings.TrimPrefix(b, "!"))
			})
			require.Equal(t, c.want, strings.Join(seen, " "))
			require.Zero(t, report.TooDeep)
		})
	}
}

func TestReportOfIgnored(t *testing.T) {
	root := t.TempDir()
	files{
		".ignore": "*.log\nout\n", "a.log": "", "b.log": "", "out/x/y": "", "sub/c.log": "", "sub/out/z": "", ".hid.log": "",
	}.write(t, root)
	_, report := collect(t, start(t, root, ".", walk.Options{}), anything)
	require.Equal(t, 5, report.Ignored, "hidden ones would not be shown anyway")
	require.Equal(t, []string{"out", "sub/out"}, report.IgnoredDirs)
}

func TestSkipDirAndSkipAll(t *testing.T) {
	root := t.TempDir()
	files{"a/x": "", "b/y": "", "c": ""}.write(t, root)
	visit := func(at string, err error) ([]string, walk.Report, error) {
		var seen []string
		report, err := walk.Walk(context.Background(), start(t, root, ".", walk.Options{Workers: 1}), func(_ int, e *walk.Entry) error {
			seen = append(seen, e.Path)
			if e.Path == at {
				return err
			}
			return nil
		})
		return seen, report, err
	}
	seen, report, err := visit("a", fs.SkipDir)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "b/y"}, seen)
	require.False(t, report.Partial)

	seen, report, err = visit("b", fs.SkipAll)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, seen)
	require.True(t, report.Partial)

	boom := errors.New("boom")
	_, report, err = visit("b/y", boom)
	require.ErrorIs(t, err, boom)
	require.True(t, report.Partial)

	_, report, err = visit("b/y", fs.SkipAll)
	require.NoError(t, err)
	require.False(t, report.Partial, "it was the last one")
}

func TestCancel(t *testing.T) {
	root := t.TempDir()
	f := bushy(300)
	f.write(t, root)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var count, ended atomic.Int64
	report, err := walk.Walk(ctx, start(t, root, ".", walk.Options{Workers: 4}), func(int, *walk.Entry) error {
		if count.Add(1) == 50 {
			cancel()
			ended.Store(count.Load())
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, report.Partial)
	require.LessOrEqual(t, count.Load(), ended.Load()+3, "no visit begins after the end but those that had looked before")

	report, err = walk.Walk(ctx, start(t, root, ".", walk.Options{}), func(int, *walk.Entry) error {
		t.Error("a visit after the context ended")
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, report.Partial)
}

func TestGoroutinesEnd(t *testing.T) {
	root := t.TempDir()
	bushy(50).write(t, root)
	before := runtime.NumGoroutine()
	for range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := walk.Walk(ctx, start(t, root, ".", walk.Options{Workers: 8}), func(int, *walk.Entry) error {
			cancel()
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, time.Minute, time.Millisecond,
		"but for the two of Eventually")
}

func TestCountFiles(t *testing.T) {
	root := t.TempDir()
	f := bushy(100)
	f[".gitignore"], f[".git/x"], f["l"] = "*", "", "-> d1"
	f.write(t, root)
	node := start(t, root, ".", walk.Options{})
	n, exact := walk.CountFiles(context.Background(), node.Dir(), 0)
	require.Equal(t, 202, n)
	require.True(t, exact)
	n, exact = node.CountFilesIn(context.Background(), "d1", 0)
	require.Equal(t, 30, n)
	require.True(t, exact)
	n, exact = node.CountFilesIn(context.Background(), "d1", 10)
	require.GreaterOrEqual(t, n, 10)
	require.False(t, exact)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, exact = walk.CountFiles(ctx, node.Dir(), 0)
	require.False(t, exact)
	_, exact = node.CountFilesIn(context.Background(), "none", 0)
	require.False(t, exact)
}
