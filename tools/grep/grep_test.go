package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// epoch is the modification time of the first file that tree creates; each
// following file is one second newer.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tree creates files, given as "name=text", in a new root, each newer than the
// one before.
func tree(t testing.TB, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for i, file := range files {
		name, text, _ := strings.Cut(file, "=")
		name = filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		when := epoch.Add(time.Duration(i) * time.Second)
		require.NoError(t, os.Chtimes(name, when, when))
	}
	return root
}

// defaults returns the arguments of a call that sets only a pattern.
func defaults(pattern string) arguments {
	return arguments{Pattern: pattern, Hidden: true, Number: true, OutputMode: modeContent, HeadLimit: 100, Sort: "mtime"}
}

// newTest returns a grepper for a root; it is closed with the test.
func newTest(t testing.TB, c Config, root string) (*grepper, *sandbox.FS) {
	t.Helper()
	g, _, err := newGrepper(sandbox.Config{Roots: []string{root}}, state.Config{}, c)
	require.NoError(t, err)
	t.Cleanup(g.close)
	fsys, err := g.box.FS(t.Context())
	require.NoError(t, err)
	return g, fsys
}

func text(t testing.TB, args arguments, root string) string {
	t.Helper()
	g, fsys := newTest(t, DefaultConfig(), root)
	r, err := g.run(t.Context(), fsys, args)
	require.NoError(t, err)
	return r.Text
}

func TestOddNames(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no name holds a newline here")
	}
	root := tree(t, "new\nline.txt=needle\n", "-v=needle\n", "sub\x1bdir/[a].txt=needle\n")
	args := defaults("needle")
	args.OutputMode = modeFiles
	require.Equal(t, "3 files match (searched 3)\nsub\\x1bdir/[a].txt\n-v\nnew\\nline.txt\n", text(t, args, root))
	for glob, want := range map[string]string{`new\nline.txt`: `new\nline.txt`, "-v": "-v", "[a].txt": `sub\x1bdir/[a].txt`} {
		args.Glob = []string{glob}
		require.Equal(t, "1 file matches (searched 1)\n"+want+"\n", text(t, args, root), glob)
	}
	args.Glob, args.Path = nil, `new\nline.txt`
	g, fsys := newTest(t, DefaultConfig(), root)
	_, err := g.run(t.Context(), fsys, args)
	require.NoError(t, err, "a name as it is shown is accepted back")
}

// TestPages: pages of any size of one search fit together in every mode.
func TestPages(t *testing.T) {
	var files []string
	for i := range 23 {
		files = append(files, fmt.Sprintf("d%d/f%d=%s", i%4, i, strings.Repeat("x hit\nnone\n", i%7)))
	}
	root := tree(t, files...)
	for _, mode := range []string{modeContent, modeFiles, modeCount} {
		for _, sort := range []string{"mtime", "path"} {
			args := defaults("hit")
			args.OutputMode, args.Sort, args.MaxPerFile, args.HeadLimit = mode, sort, 4, 100_000
			whole := strings.SplitAfter(text(t, args, root), "\n")[1:]
			for _, size := range []int{1, 2, 5, 7} {
				var pages []string
				args.HeadLimit, args.Offset = size, 0
				for {
					g, fsys := newTest(t, DefaultConfig(), root)
					r, err := g.run(t.Context(), fsys, args)
					require.NoError(t, err)
					lines := strings.SplitAfter(r.Text, "\n")[1:]
					if len(pages) > 0 && len(lines) > 0 && lines[0] == lastPath(pages) {
						lines = lines[1:] // a file that continues is named again
					}
					pages = append(pages[:max(len(pages)-1, 0)], lines...)
					m := r.Meta.(meta)
					if !m.Truncated {
						break
					}
					require.Equal(t, args.Offset+m.Shown, m.NextOffset)
					require.Contains(t, r.Text, fmt.Sprintf("offset=%d for more", m.NextOffset))
					args.Offset = m.NextOffset
				}
				require.Equal(t, strings.Join(whole, ""), strings.Join(pages, ""), "%s by %s, %d at a time", mode, sort, size)
			}
		}
	}
}

// An offset beyond the end, even the largest, is answered with the totals.
func TestOffsetBehindTheEnd(t *testing.T) {
	root := tree(t, "a=hit\n", "b=hit\nhit\n")
	for _, mode := range []string{modeContent, modeFiles, modeCount} {
		for _, offset := range []int{3, math.MaxInt - 100, math.MaxInt} {
			args := defaults("hit")
			args.OutputMode, args.Offset = mode, offset
			require.Contains(t, text(t, args, root), fmt.Sprintf(", none from offset %d (searched 2)", offset))
		}
	}
}

// lastPath returns the last line that names a file.
func lastPath(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i] != "" && lines[i][0] != ' ' {
			return lines[i]
		}
	}
	return ""
}

// TestChangedBetweenThePasses: the current content is shown, with a note.
func TestChangedBetweenThePasses(t *testing.T) {
	root := tree(t, "gone=hit\n", "fewer=hit\nhit\nhit\n", "more=hit\n", "same=hit\n")
	g, fsys := newTest(t, DefaultConfig(), root)
	q, err := g.newQuery(t.Context(), fsys, defaults("hit"))
	require.NoError(t, err)
	f, err := q.searchTree(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(root, "gone")))
	require.NoError(t, os.WriteFile(filepath.Join(root, "fewer"), []byte("x\nhit\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "more"), []byte("hit\nhit\n"), 0o644))
	r, err := q.render(t.Context(), f)
	require.NoError(t, err)
	require.Equal(t, strings.Join([]string{
		"6 matches in 4 files (searched 4)",
		"same", "  1: hit",
		"more", "  1: hit",
		"fewer", "  2: hit", "  … changed during the search: 1 of 3 matches remain",
		"gone", "  … can no longer be read", "",
	}, "\n"), r.Text)
}

func TestDeadlineAndCancel(t *testing.T) {
	root := tree(t, "a=hit\n")
	g, fsys := newTest(t, DefaultConfig(), root)
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	for _, path := range []string{"", "a"} {
		args := defaults("hit")
		args.Path = path
		r, err := g.run(late, fsys, args)
		require.NoError(t, err, "what was found so far is an answer")
		require.True(t, r.Meta.(meta).Partial)
		require.Contains(t, r.Text, "no matches so far (searched 0; stopped after")
		require.Contains(t, r.Text, "narrow path, glob or type for the rest")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := g.run(cancelled, fsys, defaults("hit"))
	require.ErrorIs(t, err, context.Canceled)
}

// TestPartialIsShown: results from before the deadline are rendered after it.
func TestPartialIsShown(t *testing.T) {
	root := tree(t, "a=hit\nhit\n")
	g, fsys := newTest(t, DefaultConfig(), root)
	q, err := g.newQuery(t.Context(), fsys, defaults("hit"))
	require.NoError(t, err)
	f, err := q.searchTree(t.Context())
	require.NoError(t, err)
	f.partial, f.elapsed = true, 20*time.Second
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	r, err := q.render(late, f)
	require.NoError(t, err)
	require.Equal(t, "2+ matches in 1+ files (searched 1; stopped after 20s: narrow path, glob or type for the rest)\na\n  1: hit\n  2: hit\n", r.Text)
}

func TestUnreadableIsSaid(t *testing.T) {
	root := tree(t, "a=hit\n", "shut/b=hit\n", "c=hit\n")
	if runtime.GOOS != "windows" && os.Getuid() != 0 { // root reads everything
		require.NoError(t, os.Chmod(filepath.Join(root, "shut"), 0))
		t.Cleanup(func() { os.Chmod(filepath.Join(root, "shut"), 0o755) })
		require.NoError(t, os.Chmod(filepath.Join(root, "c"), 0))
		got := text(t, defaults("hit"), root)
		require.Contains(t, got, "1 match in 1 file (searched 1; not searched: 1 unreadable (c); 1 directory unreadable: shut)")
	}
	g, fsys := newTest(t, DefaultConfig(), root)
	q, err := g.newQuery(t.Context(), fsys, defaults("hit"))
	require.NoError(t, err)
	f := &searchResult{abs: root, report: walk.Report{Unreadable: 5, TooDeep: 1, UnreadableDirs: []walk.Fault{{Path: "x"}, {Path: "y/z"}, {Path: "u"}, {Path: "v"}}}}
	for _, path := range []string{"e", "d/c", "b", "a"} {
		f.countSkipped(path, unreadable)
	}
	require.Equal(t, []string{"not searched: 4 unreadable (a, b, d/c, …)", "5 directories unreadable: x, y/z, u, …", "1 directory too deep to enter"}, q.skippedNotes(f))
}

// TestBudget: no answer exceeds its budget, for any arguments, and each has its
// totals and tells how to continue.
func TestBudget(t *testing.T) {
	var files []string
	for i := range 40 {
		files = append(files, fmt.Sprintf("%s%d=%s", strings.Repeat("n", i*3), i, strings.Repeat(strings.Repeat("wide äö ", i*5)+"hit\nrest\n", i)))
	}
	root := tree(t, files...)
	g, fsys := newTest(t, DefaultConfig(), root)
	for _, tokens := range []int{500, 700, 1500, 5000} {
		for _, limit := range []int{1, 10, 100, 1000} {
			for _, mode := range []string{modeContent, modeFiles, modeCount} {
				args := defaults("hit")
				five := 5
				args.HeadLimit, args.OutputMode, args.Context = limit, mode, &five
				r, err := g.run(wire.WithBudget(t.Context(), tokens), fsys, args)
				require.NoError(t, err)
				require.LessOrEqual(t, len(r.Text), tokens*4)
				m := r.Meta.(meta)
				require.Equal(t, m.Truncated, m.Shown > 0, "it is left out where all are shown")
				require.Equal(t, 39, m.Files)
				if mode != modeFiles {
					require.Equal(t, 780, m.Matches)
				}
				if m.Reduced != "" {
					require.Contains(t, r.Text, "to fit the result limit; narrow")
				}
				if m.NextOffset > 0 {
					require.Contains(t, r.Text, fmt.Sprintf("offset=%d for more", m.NextOffset))
				}
			}
		}
	}
}

// TestOwnContextIsShort: unrequested context makes an answer at most a short
// page long, and omissions in it are not mentioned.
func TestOwnContextIsShort(t *testing.T) {
	for width, lines := range map[int]int{8: 20, 40: 12, 80: 4, 400: 0} {
		body := strings.Repeat(strings.Repeat("x", width)+"\n", 50)
		root := tree(t, "a="+body+"hit\n"+body)
		g, fsys := newTest(t, DefaultConfig(), root)
		r, err := g.run(t.Context(), fsys, defaults("hit"))
		require.NoError(t, err)
		require.LessOrEqual(t, len(r.Text), defaultContextBytes+100)
		require.Equal(t, 2*lines, strings.Count(r.Text, "- x"), "width %d", width)
		require.Contains(t, r.Text, "  51: hit\n")
		require.Empty(t, r.Meta.(meta).Reduced)
	}
}

// TestWindows: a file read in many windows gives the same lines, numbers and
// context as one read at once.
func TestWindows(t *testing.T) {
	var b strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&b, "line %d", i)
		if i%9973 == 0 {
			b.WriteString(" hit")
		}
		b.WriteString(strings.Repeat(" x", i%23) + "\n")
	}
	require.Greater(t, b.Len(), 4*wholeSize)
	root := tree(t, "big="+b.String(), "wide="+string(utf16le(b.String())))
	for _, path := range []string{"big", "wide"} {
		for _, context := range []int{0, 3, 9000} {
			args := defaults("hit")
			args.Path, args.Context = path, &context
			g, fsys := newTest(t, DefaultConfig(), root)
			q, err := g.newQuery(t.Context(), fsys, args)
			require.NoError(t, err)
			f, err := q.searchTree(t.Context())
			require.NoError(t, err)
			p, _ := q.renderContent(t.Context(), f, 100<<20)
			require.Equal(t, windowless(b.String(), context), numbersOf(p.rows), path)
		}
	}
}

func utf16le(text string) []byte {
	out := []byte{0xff, 0xfe}
	for _, c := range text {
		out = append(out, byte(c), byte(c>>8))
	}
	return out
}

// windowless returns the expected lines, with marks of context.
func windowless(text string, context int) (want []string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	sign := map[int]string{}
	for i, l := range lines {
		for near := max(i-context, 0); strings.Contains(l, "hit") && near <= min(i+context, len(lines)-1); near++ {
			if sign[near] == "" || near == i {
				sign[near] = map[bool]string{true: ":", false: "-"}[near == i]
			}
		}
	}
	for i, l := range lines {
		if sign[i] != "" {
			want = append(want, fmt.Sprintf("%d%s %s", i+1, sign[i], l))
		}
	}
	return want
}

func numbersOf(rows []row) (got []string) {
	for _, r := range rows {
		sign := ":"
		if r.Context {
			sign = "-"
		}
		got = append(got, fmt.Sprintf("%d%s %s", r.Line, sign, r.Text))
	}
	return got
}

// TestSideBySide: concurrent calls share the index, the buffers and the buffer
// for large files.
func TestSideBySide(t *testing.T) {
	callers, calls := 6, 3
	if mcpkittest.RaceEnabled {
		callers, calls = 3, 2
	}
	root := tree(t, "a=hit\n", "b=none\n", "long="+strings.Repeat("y", ownBufferSize+1)+"hit\n", "c=hit\n")
	g, fsys := newTest(t, DefaultConfig(), root)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range calls {
				r, err := g.run(t.Context(), fsys, defaults("hit"))
				if err != nil || !strings.HasPrefix(r.Text, "3 matches in 3 files (searched 4)") {
					t.Errorf("%v: %v", err, r)
				}
			}
		})
	}
	group.Wait()
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]sizeFlag{"0": 0, "12": 12, "64M": 64 << 20, "64MiB": 64 << 20, "1g": 1 << 30, "3KB": 3 << 10} {
		var got sizeFlag
		require.NoError(t, got.Set(text), text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "M", "-1", "1.5G", "99999999999G", "12T"} {
		require.Error(t, new(sizeFlag).Set(text), text)
	}
	for want, n := range map[string]sizeFlag{"64M": 64 << 20, "1000": 1000, "2K": 2048, "0": 0} {
		require.Equal(t, want, n.String())
	}
}
