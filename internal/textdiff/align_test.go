package textdiff_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

// kept checks that the runs are equal elements in ascending order, and returns
// the number of their elements.
func kept[T comparable](t *testing.T, a, b []T, runs []textdiff.Run) int {
	t.Helper()
	i, j, n := 0, 0, 0
	for k, r := range runs {
		require.True(t, r.A >= i && r.B >= j && r.N > 0, "run %d of %v", k, runs)
		require.True(t, k == 0 || r.A > i || r.B > j, "runs %d and %d are one", k-1, k)
		require.True(t, slices.Equal(a[r.A:r.A+r.N], b[r.B:r.B+r.N]), "run %d", k)
		i, j, n = r.A+r.N, r.B+r.N, n+r.N
	}
	return n
}

func generate(n int, line func(i int) string) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = line(i)
	}
	return lines
}

// TestAlignLarge: texts too large for one call of go-diff, with a few changes,
// have few differences, whatever their lines.
func TestAlignLarge(t *testing.T) {
	const n = 100_000
	rng := rand.New(rand.NewPCG(9, 10))
	for name, line := range map[string]func(i int) string{
		"unique":   func(i int) string { return fmt.Sprint(i) },
		"periodic": func(i int) string { return fmt.Sprint(i % 7) },
		"equal":    func(int) string { return "}" },
		"random":   func(int) string { return fmt.Sprint(rng.IntN(60)) },
	} {
		a := generate(n, line)
		b := slices.Clone(a)
		b[10], b[n/10], b[n-10] = "first", "second", "last"
		b = slices.Insert(b, n/2, generate(n/10, func(i int) string { return fmt.Sprint("new ", i) })...)
		b = slices.Delete(b, n/4, n/4+5)
		require.GreaterOrEqual(t, kept(t, a, b, textdiff.Align(a, b, nil)), n-50, name)
		require.GreaterOrEqual(t, kept(t, b, a, textdiff.Align(b, a, nil)), n-50, name)
	}
}

// hostile returns texts that are designed to be expensive.
func hostile(n int) map[string][2][]string {
	rng := rand.New(rand.NewPCG(11, 12))
	random := func(kinds int) [2][]string {
		line := func(int) string { return fmt.Sprint(rng.IntN(kinds)) }
		return [2][]string{generate(n, line), generate(n, line)}
	}
	unique := generate(n, func(i int) string { return fmt.Sprint(i) })
	shuffled, reversed := slices.Clone(unique), slices.Clone(unique)
	rng.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	slices.Reverse(reversed)
	equal := generate(n, func(int) string { return "x" })
	halves := append(slices.Clone(equal[:n/2]), generate(n/2, func(int) string { return "y" })...)
	swapped := slices.Clone(halves)
	slices.Reverse(swapped)
	third := func(other string) []string {
		return generate(n, func(i int) string { return []string{"k", other + fmt.Sprint(i), other}[i%3] })
	}
	return map[string][2][]string{
		"two kinds":  random(2),
		"forty":      random(40),
		"thousand":   random(1000),
		"rare":       random(n / 2),
		"equal":      {equal, equal[:n-5]},
		"different":  {unique, generate(n, func(i int) string { return fmt.Sprint("b", i) })},
		"shuffled":   {unique, shuffled},
		"reversed":   {unique, reversed},
		"halves":     {halves, swapped},
		"some equal": {third("a"), third("b")},
	}
}

// TestHostile: for every text, the runs are correct and the same each time.
func TestHostile(t *testing.T) {
	for name, texts := range hostile(12_000) {
		a, b := texts[0], texts[1]
		runs := textdiff.Align(a, b, nil)
		kept(t, a, b, runs)
		require.Equal(t, runs, textdiff.Align(a, b, nil), name)
	}
}

// TestMoreLinesThanRunes: lines beyond the available runes count as different.
func TestMoreLinesThanRunes(t *testing.T) {
	const most = 1 << 20
	for _, n := range []int{most, most + 1} {
		a := generate(n, func(i int) string { return fmt.Sprint(i) })
		b := slices.Clone(a)
		b[0], b[n-1] = "first", "last"
		if n > most {
			require.Empty(t, textdiff.Align(a, b, nil))
		} else {
			require.Equal(t, []textdiff.Run{{A: 1, B: 1, N: n - 2}}, textdiff.Align(a, b, nil))
		}
	}
}

// TestAlignStopped: Align stops at the first request and returns correct runs.
func TestAlignStopped(t *testing.T) {
	texts := hostile(12_000)["two kinds"]
	a, b := texts[0], texts[1]
	all, asked := textdiff.Align(a, b, nil), 0
	_ = textdiff.Align(a, b, func() bool { asked++; return false })
	require.Greater(t, asked, 8)
	for at := 1; at <= asked; at += asked / 4 {
		n := 0
		runs := textdiff.Align(a, b, func() bool { n++; return n >= at })
		require.Equal(t, at, n, "it is not asked again")
		require.Less(t, kept(t, a, b, runs), kept(t, a, b, all))
	}
}

func FuzzUnified(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nc\nd")
	f.Add("", "x")
	f.Add("a\r\nb\n\n\n", "\n\nb\na\r\n")
	f.Add("�\n\xff\n", "\xff\n�\n")
	f.Add(strings.Repeat("a\nb\n", 20), strings.Repeat("b\na\n", 20))
	f.Fuzz(func(t *testing.T, old, new string) {
		if strings.Contains(old+new, "\\ No newline") || strings.Contains(old+new, "\x00") {
			return // the function patch would misread it
		}
		require.Equal(t, new, patch(t, old, unified(old, new, textdiff.Options{}).Text))
		a, b := strings.SplitAfter(old, "\n"), strings.SplitAfter(new, "\n")
		kept(t, a, b, textdiff.Align(a, b, nil))
	})
}
