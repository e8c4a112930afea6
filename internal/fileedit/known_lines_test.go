package fileedit_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// view marks lines of a file as seen, as the tool view does.
func (f *fixture) view(name string, ranges ...[2]int64) {
	f.t.Helper()
	file, err := f.fs.Open(name)
	require.NoError(f.t, err)
	defer file.Close()
	index, err := textfile.Scan(context.Background(), file, file.Stat.Size, textfile.Options{})
	require.NoError(f.t, err)
	seen := state.Seen{Path: file.Path, Stamp: state.StampOf(file.Stat, time.Now()), Index: *index}
	for _, r := range ranges {
		shown := state.Range{First: r[0], Last: r[0] - 1}
		require.NoError(f.t, index.EachLine(file, r[0], textfile.DefaultMaxChars, func(l textfile.Line) bool {
			if l.Number > r[1] {
				return false
			}
			shown.Last, shown.Sums = l.Number, append(shown.Sums, l.Sum)
			return true
		}))
		seen.Ranges = append(seen.Ranges, shown)
	}
	require.NoError(f.t, f.Store.Remember(seen))
}

// known returns the lines of the current file that are recorded as seen, and
// checks each against the record.
func (f *fixture) known(name string) map[int64]bool {
	f.t.Helper()
	raw, err := os.ReadFile(f.file(name))
	require.NoError(f.t, err)
	seen, ok := f.Store.Seen(f.file(name))
	require.True(f.t, ok)
	require.Equal(f.t, textfile.EtagOf(raw), seen.Index.Etag)
	known := map[int64]bool{}
	last := int64(0)
	for _, r := range seen.Ranges {
		require.Greater(f.t, r.First, last, "sorted and apart")
		require.EqualValues(f.t, len(r.Sums), r.Last-r.First+1)
		last = r.Last
		for i, sum := range r.Sums {
			n := r.First + int64(i)
			known[n] = true
			require.NoError(f.t, seen.Index.EachLine(bytes.NewReader(raw), n, textfile.DefaultMaxChars, func(l textfile.Line) bool {
				require.Equal(f.t, l.Sum, sum, "line %d of %q", n, raw)
				return false
			}))
			require.LessOrEqual(f.t, n, seen.Index.Lines)
		}
	}
	return known
}

// TestKnownLinesFollowEdits makes random edits in files of all encodings. Each
// line recorded as seen has the recorded content, and the record covers at
// least the written lines and the lines that were seen before and not touched.
func TestKnownLinesFollowEdits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for round := range 300 {
		f := newFixture(t)
		encoding := []textfile.Encoding{textfile.UTF8, textfile.UTF8, textfile.UTF16LE, textfile.UTF16BE}[rng.IntN(4)]
		ending := []string{"\n", "\r\n", "\r"}[rng.IntN(3)]
		var lines []string
		for i := range 2 + rng.IntN(30) {
			lines = append(lines, fmt.Sprintf("line %d %s", i, strings.Repeat("ö", rng.IntN(4))))
		}
		text := "\ufeff" + strings.Join(lines, ending) + ending
		raw, err := encoding.Encode(text)
		require.NoError(t, err)
		f.put("a.txt", string(raw))
		first := 1 + rng.Int64N(int64(len(lines)))
		last := first + rng.Int64N(int64(len(lines))-first+1)
		f.view("a.txt", [2]int64{first, last})
		if !known(f, "a.txt", first, last) {
			t.Fatalf("round %d: not all is remembered", round)
		}

		// Replace a word of a random line by several lines.
		at := rng.IntN(len(lines))
		word, err := encoding.Encode(fmt.Sprintf("line %d ", at))
		require.NoError(t, err)
		var added []string
		for i := range rng.IntN(4) {
			added = append(added, fmt.Sprintf("new %d", i))
		}
		text = strings.Join(added, ending)
		put, err := encoding.Encode(text)
		require.NoError(t, err)
		start := bytes.Index(raw, word)
		f.splice("a.txt", textdiff.Change{Start: start, End: start + len(word), New: string(put)})
		shift := int64(strings.Count(text, ending))
		got := f.known("a.txt")
		for n := range int64(len(lines)) {
			n++
			switch touched := int64(at + 1); {
			case n < touched:
				require.Equal(t, n >= first && n <= last, got[n], "round %d line %d", round, n)
			case n > touched:
				require.Equal(t, n >= first && n <= last, got[n+shift], "round %d line %d", round, n)
			default:
				for m := n; m <= n+shift; m++ {
					require.True(t, got[m], "round %d: line %d was written", round, m)
				}
			}
		}
	}
}

func known(f *fixture, name string, first, last int64) bool {
	got := f.known(name)
	for n := first; n <= last; n++ {
		if !got[n] {
			return false
		}
	}
	return int64(len(got)) == last-first+1
}

// TestManyChangesAtOnce: many changes in one call, as replace_all makes them.
func TestManyChangesAtOnce(t *testing.T) {
	for _, n := range []int{2, 100, 1000} {
		f := newFixture(t)
		f.put("a.txt", strings.Repeat("a b a\nx\n", n))
		f.view("a.txt", [2]int64{1, int64(2 * n)})
		var changes []textdiff.Change
		for i := range n {
			at := i * len("a b a\nx\n")
			changes = append(changes, textdiff.Change{Start: at, End: at + 1, New: "A\nA"}, textdiff.Change{Start: at + 4, End: at + 5, New: "A"})
		}
		f.splice("a.txt", changes...)
		require.Equal(t, strings.Repeat("A\nA b A\nx\n", n), f.content("a.txt"))
		require.GreaterOrEqual(t, len(f.known("a.txt")), min(3*n, 256), "as many as are kept")
		_, err := f.Undo(context.Background(), f.fs, "a.txt", fileedit.Options{})
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("a b a\nx\n", n), f.content("a.txt"))
	}
}

// TestStaysBehind: an edit of a file that somebody else changed does not mark
// that change as seen, while the written lines are known.
func TestStaysBehind(t *testing.T) {
	f := newFixture(t)
	f.put("a.txt", "one\ntwo\nthree\n")
	f.view("a.txt", [2]int64{1, 3})
	f.put("a.txt", "ONE\ntwo\nthree\n")
	f.splice("a.txt", textdiff.Change{Start: 8, End: 13, New: "3\n4"})
	seen, ok := f.Store.Seen(f.file("a.txt"))
	require.True(t, ok)
	require.NotEqual(t, textfile.EtagOf([]byte(f.content("a.txt"))), seen.Index.Etag)
	var sums []uint32
	for _, r := range seen.Ranges {
		sums = append(sums, r.Sums...)
	}
	require.True(t, slices.Contains(sums, textfile.LineSum([]byte("3\n"))))
	require.True(t, slices.Contains(sums, textfile.LineSum([]byte("4\n"))))
	require.False(t, slices.Contains(sums, textfile.LineSum([]byte("ONE\n"))))
}

// TestSince compares random versions of a file that was seen completely: the
// difference shows the added lines, and every line it shows is in the file.
func TestSince(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 200 {
		f := newFixture(t)
		var lines []string
		for i := range rng.IntN(40) {
			lines = append(lines, fmt.Sprintf("line %d", i))
		}
		f.put("a.txt", join(lines))
		if len(lines) > 0 {
			f.view("a.txt", [2]int64{1, int64(len(lines))})
		} else {
			f.view("a.txt")
		}
		var added, removed int
		var now []string
		for _, line := range lines {
			switch rng.IntN(12) {
			case 0:
				removed++
				continue
			case 1:
				now = append(now, fmt.Sprintf("new %d", added))
				added++
			}
			now = append(now, line)
		}
		f.put("a.txt", join(now))
		var d fileedit.Difference
		var fresh bool
		_, err := f.Rewrite(context.Background(), f.fs, "a.txt", fileedit.Options{DryRun: true}, func(b *fileedit.Before) (*fileedit.After, error) {
			d, fresh = b.DifferenceFromSeen(1000), b.IsSeenVersion()
			return fileedit.Whole([]byte("x")), nil
		})
		require.NoError(t, err)
		require.Equal(t, added+removed == 0, fresh)
		if fresh || len(lines) == 0 {
			require.Empty(t, d.Text)
			continue
		}
		require.Equal(t, [2]int{added, removed}, [2]int{d.Added, d.Removed}, d.Text)
		require.False(t, d.Partial)
		for i := range added {
			require.Contains(t, d.Text, fmt.Sprintf("\n+new %d\n", i))
		}
	}
}

func join(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}
