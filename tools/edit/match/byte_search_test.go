package match

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNeedle: every method finds the same as bytes.Index.
func TestNeedle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n, letters int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab\ncdefgh"[rng.IntN(letters)]
		}
		return b
	}
	for range 3000 {
		letters := 1 + rng.IntN(8)
		text := random(rng.IntN(3000), letters)
		pat := random(1+rng.IntN(4), letters)
		if rng.IntN(2) == 0 {
			pat = random(1+rng.IntN(200), 1+rng.IntN(2))
		}
		if at := rng.IntN(len(text) + 1); rng.IntN(2) == 0 {
			text = append(append(bytes.Clone(text[:at]), pat...), text[at:]...)
		}
		for _, way := range []searchMethod{undecided, byPrefix, byHash} {
			n := needle{pattern: pat, method: way}
			for from := 0; from <= len(text); from += 1 + rng.IntN(300) {
				want := bytes.Index(text[from:], pat)
				if want >= 0 {
					want += from
				}
				require.Equal(t, want, n.indexFrom(text, from), "way %d", way)
			}
		}
	}
}

// TestNeedleChangesItsWay: text that is slow for one method is searched by the
// next.
func TestNeedleChangesItsWay(t *testing.T) {
	text := bytes.Repeat([]byte("a"), 1<<22)
	n := needle{pattern: append(bytes.Repeat([]byte("a"), 1<<19), 'b')}
	require.Equal(t, -1, n.indexFrom(text, 0))
	require.Equal(t, byHash, n.method)

	n = needle{pattern: []byte("aab")}
	require.Equal(t, len(text)-2, n.indexFrom(append(text, 'b'), 0))
}
