package index_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/tools/grep/index"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// A literal of a text, unchanged or with its case changed, is never Missing
// from it, whatever other literals of the text are required, too.
func FuzzNothingPresentIsMissing(f *testing.F) {
	f.Add([]byte("func main() { return }"), uint(5), uint(4), uint(1))
	f.Add([]byte("the \u212aelvin \u017fcale, \u017f\u212a\u017f\u212a, \xe2\x84\xe2\x84\xaa\xc5\xc5\xbf"), uint(4), uint(9), uint(2))
	f.Add([]byte("GRÜSSE, 漢字, \x00\xff\xfe"), uint(0), uint(30), uint(3))
	f.Add([]byte(strings.Repeat("kK\u212a\u017fsS", 30)), uint(7), uint(90), uint(7))
	f.Fuzz(func(t *testing.T, text []byte, from, length, cut uint) {
		from = min(from, uint(len(text)))
		part := text[from : from+min(length, uint(len(text))-from)]
		if len(part) == 0 {
			return
		}
		signs := strings.NewReplacer("\u212a", "k", "\u017f", "s")
		lowered := asciiLower(string(part))
		literals := []search.Literal{
			{Text: part},
			{Text: []byte(lowered), Fold: true},
			{Text: []byte(signs.Replace(lowered)), Fold: true},
		}
		x := index.New(1 << 24)
		k := settledKey(1, text)
		x.Add(k, now(), text, false)
		var sets [][]search.Literal
		for _, l := range literals {
			if len(l.Text) == 0 {
				continue
			}
			set := []search.Literal{{Text: []byte("not in it, most likely")}, l}
			if cut%2 == 1 {
				set = []search.Literal{l}
			}
			sets = append(sets, set)
			require.NotEqual(t, index.Missing, x.Lookup(k, index.NewQuery([][]search.Literal{set})), "%q in %q", l.Text, text)
		}
		require.NotEqual(t, index.Missing, x.Lookup(k, index.NewQuery(sets)))
	})
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
