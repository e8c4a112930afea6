package textdiff_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

func unified(old, newText string, o textdiff.Options) textdiff.Diff {
	return textdiff.Unified([]byte(old), textdiff.Between([]byte(old), newText), o)
}

func numberedLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestUnified(t *testing.T) {
	text := numberedLines(20)
	d := unified(text, strings.Replace(text, "line 10\n", "line ten\nand more\n", 1), textdiff.Options{Old: "a/x", New: "b/x"})
	require.Equal(t, `--- a/x
+++ b/x
@@ -7,7 +7,8 @@
 line 7
 line 8
 line 9
-line 10
+line ten
+and more
 line 11
 line 12
 line 13
`, d.Text)
	require.Equal(t, []int{2, 1, 0}, []int{d.Added, d.Removed, d.Cut})
	require.Empty(t, unified(text, text, textdiff.Options{Old: "a/x", New: "b/x"}).Text)
}

func TestHunks(t *testing.T) {
	// Six lines between two changes are context of both changes, in one hunk;
	// seven lines give two hunks.
	text := numberedLines(30)
	change := func(lines ...int) string {
		all := strings.SplitAfter(text, "\n")
		for _, n := range lines {
			all[n-1] = "new\n"
		}
		return strings.Join(all, "")
	}
	require.Equal(t, 1, strings.Count(unified(text, change(5, 12), textdiff.Options{}).Text, "@@ -"))
	require.Equal(t, 2, strings.Count(unified(text, change(5, 13), textdiff.Options{}).Text, "@@ -"))
	require.Contains(t, unified(text, change(1), textdiff.Options{}).Text, "@@ -1,4 +1,4 @@\n-line 1\n+new\n line 2\n")
}

func TestEnds(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
		{"a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"a\nb", "a\nc", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"},
		{"a\r\nb\r\n", "a\r\nc\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"},
		{"a\nb\n", "b\n", "@@ -1,2 +1 @@\n-a\n b\n"},
	} {
		require.Equal(t, c.want, unified(c.old, c.new, textdiff.Options{}).Text, "%q to %q", c.old, c.new)
	}
}

func TestCutAndCounted(t *testing.T) {
	text := numberedLines(200)
	d := unified(text, strings.ReplaceAll(text, "line", "row"), textdiff.Options{MaxLines: 60})
	require.Equal(t, 60, strings.Count(d.Text, "\n"))
	require.Equal(t, []int{200, 200, 341}, []int{d.Added, d.Removed, d.Cut})
	d = unified(text, strings.ReplaceAll(text, "line", "row"), textdiff.Options{})
	require.Equal(t, 401, strings.Count(d.Text, "\n"))
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("é", 5000)
	d := unified(long+"x"+long+"\n", long+"y"+long+"\n", textdiff.Options{MaxLineBytes: 100})
	require.Less(t, len(d.Text), 400)
	require.Contains(t, d.Text, "]…x…[")
	require.Contains(t, d.Text, "éyé")
	require.Contains(t, d.Text, "bytes]…")
}

// A change in long lines is shown once, with its surroundings; context lines
// are cut.
func TestWindows(t *testing.T) {
	o := textdiff.Options{MaxLineBytes: 1000, WindowChars: 200}
	long := strings.Repeat("0123456789", 500)
	for name, c := range map[string]struct{ was, is, old, new string }{
		"in the middle": {long + "OLD" + long, long + "NEW" + long, "-[5000 bytes]…OLD…[5000 bytes]\n", "+[4902 bytes]…" + long[4902:] + "NEW" + long[:99] + "…[4901 bytes]\n"},
		"at the start":  {"OLD" + long, "NEW" + long, "-OLD…[5000 bytes]\n", "+NEW" + long[:197] + "…[4803 bytes]\n"},
		"at the end":    {long + "OLD", long + "NEW", "-[5000 bytes]…OLD\n", "+[4803 bytes]…" + long[4803:] + "NEW\n"},
		"inserted":      {long + long, long + "xNEW" + long, "-[5000 bytes]…[5000 bytes]\n", "+[4902 bytes]…" + long[4902:] + "xNEW" + long[:98] + "…[4902 bytes]\n"},
		"removed":       {long + "xOLD" + long, long + long, "-[5000 bytes]…xOLD…[5000 bytes]\n", "+[4900 bytes]…" + long[4900:] + long[:100] + "…[4900 bytes]\n"},
		"large change":  {long + strings.Repeat("x", 900) + long, long + strings.Repeat("y", 900) + long, "-[5000 bytes]…" + strings.Repeat("x", 200) + "…[5700 bytes]\n", "+[5000 bytes]…" + strings.Repeat("y", 200) + "…[5700 bytes]\n"},
		"to short":      {long, "short", "-" + long[:200] + "…[4800 bytes]\n", "+short\n"},
		"from short":    {"short", long, "-short\n", "+" + long[:200] + "…[4800 bytes]\n"},
		"characters":    {strings.Repeat("é", 3000) + "a", strings.Repeat("é", 3000) + "è", "-[6000 bytes]…a\n", "+[5602 bytes]…" + strings.Repeat("é", 199) + "è\n"},
		"up to it":      {long[:990], long[:990] + "x", "-" + long[:990] + "\n", "+" + long[:990] + "x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := unified("a\n"+c.was+"\nb\n", "a\n"+c.is+"\nb\n", o)
			require.Equal(t, "@@ -1,3 +1,3 @@\n a\n"+c.old+c.new+" b\n", d.Text)
		})
	}
	d := unified(long+"\nx\n"+long[:401]+"\n"+long[:400]+"\n", long+"\ny\n"+long[:401]+"\n"+long[:400]+"\n", o)
	require.Equal(t, "@@ -1,4 +1,4 @@\n "+long[:100]+"…[4900 bytes]\n-x\n+y\n "+long[:100]+"…[301 bytes]\n "+long[:400]+"\n", d.Text)
	d = unified(numberedLines(20), strings.Replace(numberedLines(20), "line 9\n", "x\n", 1), textdiff.Options{Context: 1})
	require.Equal(t, "@@ -8,3 +8,3 @@\n line 8\n-line 9\n+x\n line 10\n", d.Text)
}

// A long line with several changes shows a window for each of the first five.
func TestSeveralPlacesOfALine(t *testing.T) {
	o := textdiff.Options{MaxLineBytes: 1000, WindowChars: 200}
	words := strings.Repeat("some words ", 400)
	for places := 2; places <= 7; places++ {
		was, is := strings.Repeat(words+"OLD", places)+words, words
		for i := range places {
			is += fmt.Sprintf("new%d", i) + words
		}
		d := unified("a\n"+was+"\nb\n", "a\n"+is+"\nb\n", o)
		require.Less(t, len(d.Text), 1200, d.Text)
		shown := min(places, 5)
		require.Equal(t, shown, strings.Count(d.Text, "OLD"), d.Text)
		for i := range places {
			require.Equal(t, i < shown, strings.Contains(d.Text, fmt.Sprintf("words new%dsome words", i)), d.Text)
		}
		if places > 5 {
			require.Contains(t, d.Text, fmt.Sprintf(" bytes, %d more places]\n", places-5))
		} else {
			require.NotContains(t, d.Text, "more places")
		}
		for _, sign := range []string{"-", "+"} { // shown and counted bytes together are the whole line
			_, line, _ := strings.Cut(d.Text, "\n"+sign)
			line, _, _ = strings.Cut(line, "\n")
			left := 0
			shown := regexp.MustCompile(`…?\[(\d+) bytes[^]]*\]…?`).ReplaceAllStringFunc(line, func(cut string) string {
				var n int
				_, err := fmt.Sscanf(strings.Trim(cut, "…[]"), "%d bytes", &n)
				require.NoError(t, err)
				left += n
				return ""
			})
			require.Equal(t, len(map[string]string{"-": was, "+": is}[sign]), left+len(shown), line)
		}
	}
	d := unified(words+words+"\n", "ONE"+words+"TWO"+words+"\n", o)
	require.Contains(t, d.Text, "\n+ONEsome words")
	require.Contains(t, d.Text, "words TWOsome")
	d = unified("OLD"+words+words+"\n", words+"TWO"+words+"\n", o)
	require.Contains(t, d.Text, "\n-OLD")
	require.Contains(t, d.Text, "words TWOsome")
}

func TestName(t *testing.T) {
	d := unified("a\n", "b\n", textdiff.Options{Old: "a/two words", New: "b/two words"})
	require.Contains(t, d.Text, "--- a/two words\t\n")
}

// TestAlign: runs are equal on both sides, in order, and in small cases as long
// as possible.
func TestAlign(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		a, b := letters(rng, 12), letters(rng, 12)
		require.Equal(t, common(a, b), kept(t, a, b, textdiff.Align(a, b, nil)), "%v %v", a, b)
	}
}

func letters(rng *rand.Rand, most int) []uint64 {
	s := make([]uint64, rng.IntN(most))
	for i := range s {
		s[i] = rng.Uint64N(5)
	}
	return s
}

// common returns the length of the longest common subsequence.
func common(a, b []uint64) int {
	best := make([]int, len(b)+1)
	for _, x := range a {
		before := 0
		for j, y := range b {
			here := best[j+1]
			if x == y {
				best[j+1] = before + 1
			} else {
				best[j+1] = max(best[j+1], best[j])
			}
			before = here
		}
	}
	return best[len(b)]
}

// TestBounded: input designed to be expensive gives one replaced block.
func TestBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	mixed := func() string {
		var b strings.Builder
		for range 60_000 {
			fmt.Fprintln(&b, rng.IntN(40))
		}
		return b.String()
	}
	d := unified(mixed(), mixed(), textdiff.Options{MaxLines: 10})
	require.Equal(t, 10, strings.Count(d.Text, "\n"))
	require.Equal(t, d.Added, d.Removed)
}

// TestChangesAlone: a diff of known changes equals the diff of the two
// versions.
func TestChangesAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		old := randomText(rng)
		changes := randomChanges(rng, old)
		d := textdiff.Unified([]byte(old), changes, textdiff.Options{})
		require.Equal(t, apply(old, changes), patch(t, old, d.Text), "%q\n%s", old, d.Text)
	}
}

func randomText(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(40) {
		b.WriteString([]string{"a", "b", "", "\tc", "}", "return"}[rng.IntN(6)])
		b.WriteString([]string{"\n", "\n", "\n", "\r\n"}[rng.IntN(4)])
	}
	if rng.IntN(3) == 0 {
		b.WriteString("end")
	}
	return b.String()
}

func randomChanges(rng *rand.Rand, old string) []textdiff.Change {
	var changes []textdiff.Change
	at := 0
	for range rng.IntN(4) {
		start := at + rng.IntN(len(old)-at+1)
		end := start + rng.IntN(min(20, len(old)-start)+1)
		new := randomText(rng)
		changes = append(changes, textdiff.Change{Start: start, End: end, New: new[:rng.IntN(len(new)+1)]})
		at = end
	}
	return changes
}

func apply(old string, changes []textdiff.Change) string {
	var b strings.Builder
	at := 0
	for _, c := range changes {
		b.WriteString(old[at:c.Start] + c.New)
		at = c.End
	}
	return b.String() + old[at:]
}

// patch applies a complete diff strictly: every line must match at its
// position.
func patch(t *testing.T, old, diff string) string {
	t.Helper()
	lines := strings.SplitAfter(old, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var out []string
	at := 0
	body := strings.SplitAfter(strings.ReplaceAll(diff, "\n\\ No newline at end of file\n", "\x00"), "\n")
	body = slices.Collect(func(yield func(string) bool) {
		for _, line := range body {
			for _, part := range strings.SplitAfter(line, "\x00") {
				if part != "" && !yield(strings.TrimSuffix(part, "\x00")) {
					return
				}
			}
		}
	})
	for _, line := range body {
		var from, n, to, m int
		switch line[0] {
		case '@':
			spans := strings.Fields(line)
			from, n = span(t, spans[1][1:])
			to, m = span(t, spans[2][1:])
			if n > 0 {
				from--
			}
			if m > 0 {
				to--
			}
			out = append(out, lines[at:from]...)
			at = from
			require.Len(t, out, to, "the new side's line numbers are right")
		case ' ':
			require.Equal(t, lines[at], line[1:])
			out, at = append(out, lines[at]), at+1
		case '-':
			require.Equal(t, lines[at], line[1:])
			at++
		case '+':
			out = append(out, line[1:])
		}
	}
	return strings.Join(append(out, lines[at:]...), "")
}

func span(t *testing.T, s string) (first, n int) {
	t.Helper()
	if !strings.Contains(s, ",") {
		s += ",1"
	}
	_, err := fmt.Sscanf(s, "%d,%d", &first, &n)
	require.NoError(t, err)
	return first, n
}

// Changes without a common line can join the text before them with the text
// after them.
func TestJoinedLines(t *testing.T) {
	for _, c := range []struct {
		old     string
		changes []textdiff.Change
		want    string
	}{
		{"1x\n0y\nz\n", []textdiff.Change{{Start: 1, End: 3}, {Start: 3, End: 6}}, "@@ -1,3 +1 @@\n-1x\n-0y\n-z\n+1z\n"},
		{"1x\n0y\nz", []textdiff.Change{{Start: 1, End: 3}, {Start: 3, End: 6}}, "@@ -1,3 +1 @@\n-1x\n-0y\n-z\n\\ No newline at end of file\n+1z\n\\ No newline at end of file\n"},
		{"1x\n0y\nz\nw\n", []textdiff.Change{{Start: 1, End: 3}, {Start: 3, End: 6}, {Start: 7, End: 8, New: "v"}}, "@@ -1,4 +1 @@\n-1x\n-0y\n-z\n-w\n+1zvw\n"},
		{"a\nb\nc\n", []textdiff.Change{{Start: 2, End: 4}}, "@@ -1,3 +1,2 @@\n a\n-b\n c\n"},
	} {
		require.Equal(t, c.want, textdiff.Unified([]byte(c.old), c.changes, textdiff.Options{}).Text, c.old)
	}
}

// The number of lines before a position may be known.
func TestKnownLines(t *testing.T) {
	old := strings.Repeat("line\n", 100)
	changes := []textdiff.Change{{Start: 250, End: 254, New: "LINE"}, {Start: 400, End: 404, New: "LINE"}}
	want := textdiff.Unified([]byte(old), changes, textdiff.Options{})
	for at := 0; at <= 500; at += 5 {
		require.Equal(t, want, textdiff.Unified([]byte(old), changes, textdiff.Options{KnownOffset: at, KnownLines: at / 5}))
	}
}

// Adjacent lines that are changed separately form one block.
func TestNeighboursAreOneBlock(t *testing.T) {
	old := "a\nb\nc\nd\n"
	one := []textdiff.Change{{Start: 0, End: 7, New: "1\nx\n2\n3\n4"}}
	each := []textdiff.Change{{Start: 0, End: 1, New: "1\nx"}, {Start: 2, End: 3, New: "2"}, {Start: 4, End: 5, New: "3"}, {Start: 6, End: 7, New: "4"}}
	want := "@@ -1,4 +1,5 @@\n-a\n-b\n-c\n-d\n+1\n+x\n+2\n+3\n+4\n"
	require.Equal(t, want, textdiff.Unified([]byte(old), one, textdiff.Options{}).Text)
	require.Equal(t, want, textdiff.Unified([]byte(old), each, textdiff.Options{}).Text)
}

// TestManyChangesInALongLine: each change is processed once. Comparing each
// with the rest of the line took hours.
func TestManyChangesInALongLine(t *testing.T) {
	const n = 400_000
	old := strings.Repeat("word, ", n)
	var changes []textdiff.Change
	for i := range n {
		changes = append(changes, textdiff.Change{Start: i*6 + 4, End: i*6 + 5, New: ";"})
	}
	d := textdiff.Unified([]byte(old), changes, textdiff.Options{})
	require.Equal(t, "@@ -1 +1 @@\n-"+old+"\n\\ No newline at end of file\n+"+strings.ReplaceAll(old, ",", ";")+"\n\\ No newline at end of file\n", d.Text)
}

// TestStopped: a diff stops once Stopped returns true.
func TestStopped(t *testing.T) {
	changes := []textdiff.Change{{Start: 0, End: 1, New: "1"}, {Start: 20, End: 21, New: "2"}}
	asked := 0
	d := textdiff.Unified([]byte("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n"), changes, textdiff.Options{Stopped: func() bool { asked++; return asked > 2 }})
	require.Equal(t, 1, d.Added)
	require.LessOrEqual(t, asked, 3)
}
