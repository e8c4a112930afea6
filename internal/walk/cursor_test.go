package walk_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// walkUntil walks until the visit number stop ends the walk by reason, and
// returns the visited paths.
func walkUntil(t testing.TB, root string, opts walk.Options, stop int, reason error) ([]string, walk.Report) {
	t.Helper()
	var count atomic.Int64
	var mu sync.Mutex
	var seen []string
	report, err := walk.Walk(context.Background(), start(t, root, ".", opts), func(_ int, e *walk.Entry) error {
		n := int(count.Add(1))
		if n >= stop && reason != fs.SkipAll {
			return reason
		}
		mu.Lock()
		seen = append(seen, e.Path)
		mu.Unlock()
		if n >= stop {
			return reason
		}
		return nil
	})
	if reason == fs.SkipAll {
		require.NoError(t, err)
	}
	return seen, report
}

// A walk that is interrupted repeatedly visits each entry exactly once, for any
// reason and number of workers.
func TestCursorLeadsToExactlyTheRest(t *testing.T) {
	root := t.TempDir()
	f := bushy(150)
	f["d1/.gitignore"], f[".git/"], f["d1/e2/x.skip"], f["d3/e3/\xff\xfe/odd\nname"] = "*.skip\nf2/\n", "", "", ""
	f["d2/.ignore"] = "e1\n/file9\n"
	f.write(t, root)
	want, _ := collect(t, start(t, root, ".", walk.Options{Hidden: true}), anything)
	stops := []int{1, 2, 3, 10, 57, 200}
	if mcpkittest.RaceEnabled {
		stops = []int{3, 10, 57}
	}
	for _, workers := range []int{1, 2, 7} {
		for _, stop := range stops {
			for _, reason := range []error{fs.SkipAll, context.Canceled} {
				var seen []string
				opts := walk.Options{Hidden: true, Workers: workers}
				rounds := 0
				for {
					some, report := walkUntil(t, root, opts, stop, reason)
					seen = append(seen, some...)
					rounds++
					if !report.Partial || rounds > 2000 {
						break
					}
					require.Less(t, len(report.Cursor), 4000)
					opts.After = report.Cursor
					if reason == context.Canceled && stop == 1 {
						reason = fs.SkipAll // no progress with an error each time
					}
				}
				slices.Sort(seen)
				require.Equal(t, want, seen, "%d workers, every %d", workers, stop)
			}
		}
	}
}

// A walk can resume inside a directory larger than one piece.
func TestCursorInHugeDirectory(t *testing.T) {
	root := t.TempDir()
	f := files{}
	for i := range 9000 {
		f[fmt.Sprintf("big/f%d", i)] = ""
	}
	for i := range 60 {
		f[fmt.Sprintf("big/z%d/in", i)] = ""
	}
	f["big/.ignore"] = "*7\n"
	f.write(t, root)
	want, _ := collect(t, start(t, root, ".", walk.Options{}), anything)
	require.Len(t, want, 1+9000-900+60-6+54)
	var seen []string
	opts := walk.Options{Workers: 3}
	for rounds := 0; ; rounds++ {
		require.Less(t, rounds, 100)
		some, report := walkUntil(t, root, opts, 700, fs.SkipAll)
		seen = append(seen, some...)
		if !report.Partial {
			break
		}
		opts.After = report.Cursor
	}
	slices.Sort(seen)
	require.Equal(t, want, seen)
}

func TestCursorSurvivesChanges(t *testing.T) {
	root := t.TempDir()
	files{"a/1": "", "a/2": "", "b/3": "", "c/4": ""}.write(t, root)
	_, report := walkUntil(t, root, walk.Options{Workers: 1}, 4, fs.SkipAll) // a b c a/1
	files{"a/0": "", "a/9": "", "d/5": ""}.write(t, root)
	seen, report := collect(t, start(t, root, ".", walk.Options{After: report.Cursor}), anything)
	require.Equal(t, []string{"a/2", "a/9", "b/3", "c/4"}, seen[:4])
	require.Zero(t, report.Unreadable)
}

func TestBadCursor(t *testing.T) {
	root := t.TempDir()
	for _, cursor := range []string{"x", "w1!", "w1AAAA", "w1" + strings.Repeat("A", 1<<21), "w1AAIuLgAAAAA", "w1AAIvYQAAAAA"} {
		_, err := walk.Walk(context.Background(), start(t, root, ".", walk.Options{After: cursor}), func(int, *walk.Entry) error { return nil })
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), cursor[:min(20, len(cursor))])
	}
}

func FuzzCursor(f *testing.F) {
	root := f.TempDir()
	files{"a/b/c": "", "a/d": "", "e": ""}.write(f, root)
	for _, seed := range []string{"", "w1", "w1AAIuLgAAAAA"} {
		f.Add(seed)
	}
	_, report := walkUntil(f, root, walk.Options{Workers: 1}, 2, fs.SkipAll)
	f.Add(report.Cursor)
	opened := openRoot(f, root)
	f.Fuzz(func(t *testing.T, cursor string) {
		node := startIn(t, opened, ".", walk.Options{After: cursor})
		_, err := walk.Walk(context.Background(), node, func(_ int, e *walk.Entry) error {
			if strings.Contains(e.Path, "..") {
				t.Errorf("left the start: %q", e.Path)
			}
			return nil
		})
		if err != nil && toolerr.CodeOf(err) != toolerr.InvalidParams {
			t.Error(err)
		}
		node.Close()
	})
}
