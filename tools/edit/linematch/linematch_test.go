package linematch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/tools/edit/linematch"
)

func find(text string, wanted ...string) (linematch.Block, bool) {
	return linematch.Find(linematch.Text{Body: []byte(text), EOL: '\n'}, wanted)
}

func TestFind(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "func part%d(x int) {\n\tif x > %d {\n\t\treturn\n\t}\n\tuse(x)\n}\n\n", i, i)
	}
	text := b.String()
	block, ok := find(text, "func part77(x int64) {", "  if x > 77 {", "    return", "  }", "  use(x, y)", "}")
	require.True(t, ok)
	require.Equal(t, 77*7+1, block.FirstLine)
	require.Equal(t, []string{"func part77(x int) {", "\tif x > 77 {", "\t\treturn", "\t}", "\tuse(x)", "}"}, block.Lines)
	require.Equal(t, 4, block.MatchingLines)

	// One line more and one line less than in the file.
	block, _ = find(text, "func part3(x int) {", "\tlog(x)", "\tif x > 3 {", "\t\treturn", "\tuse(x)", "}")
	require.Equal(t, 22, block.FirstLine)
	require.Len(t, block.Lines, 6)
	require.Contains(t, block.Pairs, linematch.Pair{Wanted: 1, Line: -1})
	require.Contains(t, block.Pairs, linematch.Pair{Wanted: -1, Line: 3})

	_, ok = find(text, "nothing", "here")
	require.False(t, ok)
	_, ok = find(text, "", "}")
	require.False(t, ok, "no word to go by")
	_, ok = find("", "a")
	require.False(t, ok)
}

// TestRareWordsWeighMost: a long range of common words ranks below the single
// line with the rare name.
func TestRareWordsWeighMost(t *testing.T) {
	text := strings.Repeat("if err != nil { return err }\n", 500) + "total := sum(prices)\n" + strings.Repeat("if err != nil { return err }\n", 500)
	block, ok := find(text, "total := sum(costs) // return err if err != nil")
	require.True(t, ok)
	require.Equal(t, 501, block.FirstLine)
}

func FuzzFind(f *testing.F) {
	f.Add("a\nb c\n\n}\n", "b d\n}")
	f.Add("a\nb c"+strings.Repeat("x", linematch.MaxLineBytes), "b d\n}")
	f.Fuzz(func(t *testing.T, text, wanted string) {
		block, ok := find(text, strings.Split(wanted, "\n")...)
		if !ok {
			return
		}
		lines := strings.Split(text, "\n")
		for i, line := range block.Lines {
			whole := strings.TrimSuffix(lines[block.FirstLine-1+i], "\r")
			require.Equal(t, whole[:min(len(whole), linematch.MaxLineBytes)], line)
		}
		for _, p := range block.Pairs {
			require.Less(t, p.Line, len(block.Lines))
		}
	})
}
