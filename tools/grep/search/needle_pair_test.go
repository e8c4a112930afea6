package search_test

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// Both implementations find the first position of two bytes and all positions
// of its block, whatever surrounds them and wherever the text ends.
func TestPairsAreFoundWhereTheyStand(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 7))
	for range 20_000 {
		text := make([]byte, random.IntN(300))
		for i := range text {
			text[i] = "aAbBcxyz\x00\x80\xe1"[random.IntN(4+random.IntN(8))]
		}
		gap, fold := random.IntN(6), random.IntN(2) == 0
		first, second := "abx\x00\x80"[random.IntN(5)], "abcy\xe1"[random.IntN(5)]
		if len(text) <= gap {
			continue
		}
		a, b := text[:len(text)-gap], text[gap:]
		from := random.IntN(len(a) + 1)
		same := func(x, y byte) bool { return x == y || fold && (x^y)&^0x20 == 0 }
		for name, next := range map[string]search.PairFinder{"machine": search.NextPair, "words": search.NextPairWords} {
			at, mask := next(a, b, from, first, second, fold)
			require.Zero(t, (at-from)%64, name)
			for i := from; i < at; i++ {
				require.False(t, same(a[i], first) && same(b[i], second), "%s passed by %d of %q", name, i, text)
			}
			if mask == 0 {
				require.Less(t, len(a)-at, 64, "%s stopped early in %q", name, text)
				continue
			}
			lowest := at + bits.TrailingZeros64(mask)
			require.True(t, same(a[lowest], first) && same(b[lowest], second), "%s: %d of %q", name, lowest, text)
			for i := range 64 {
				if same(a[at+i], first) && same(b[at+i], second) {
					require.NotZero(t, mask>>i&1, "%s forgot %d of %q", name, at+i, text)
				}
			}
		}
	}
}

// A needle finds the same as bytes.Index, in texts of all lengths.
func TestNeedlesAtAllLengths(t *testing.T) {
	for _, needle := range []string{"ab", "ea", "nnnn", "eta oin", "zq"} {
		for length := range 200 {
			text := bytes.Repeat([]byte("e"), length)
			for at := 0; at+len(needle) <= length; at++ {
				copy(text[at:], needle)
				require.Equal(t, bytes.Index(text, []byte(needle)), search.FindPair(needle, text), "%q", text)
				copy(text[at:], bytes.Repeat([]byte("e"), len(needle)))
			}
			require.Equal(t, bytes.Index(text, []byte(needle)), search.FindPair(needle, text), "%q", text)
		}
	}
}

// Long needles are found in texts full of near matches, by both methods.
func TestLongNeedles(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 3))
	draw := func(n int, from string) []byte {
		text := make([]byte, n)
		for i := range text {
			text[i] = from[0]
			if random.IntN(12) == 0 {
				text[i] = from[random.IntN(len(from))]
			}
		}
		return text
	}
	found := 0
	for range 3_000 {
		fold := random.IntN(2) == 0
		needle, letters := draw(17+random.IntN(30), "ab"), "ab"
		if fold {
			letters = "abAB"
		}
		text := draw(random.IntN(2_000), letters)
		want := bytes.Index(text, needle)
		if fold {
			want = bytes.Index(bytes.ToLower(text), needle)
		}
		if want >= 0 {
			found++
		}
		require.Equal(t, want, search.FindNeedle(string(needle), fold, false, text), "%q in %q", needle, text)
		if len(text) >= len(needle) {
			require.Equal(t, want, search.FindNeedle(string(needle), fold, true, text), "%q in %q", needle, text)
		}
	}
	require.Greater(t, found, 300)
}
