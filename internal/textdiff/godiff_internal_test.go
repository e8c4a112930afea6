package textdiff

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestRunes: there are as many runes as distinct elements, and each survives in
// a string.
func TestRunes(t *testing.T) {
	before := rune(-1)
	for n := range maxLines + 1 {
		r := nthRune(n)
		if r <= before || r == utf8.RuneError || []rune(string(r))[0] != r {
			require.Fail(t, "unusable rune", "%d: %U after %U", n, r, before)
		}
		before = r
	}
}
