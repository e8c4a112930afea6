package match_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
)

// minified returns a file of one long line.
func minified() string {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "function f%d(a,b){return a*%d+b}", i, i)
	}
	return b.String()
}

// TestLongLines: of a line of half a megabyte only the relevant part is shown.
func TestLongLines(t *testing.T) {
	file := minified()
	got, _, err := edited(t, file, match.Options{}, match.Edit{Old: "a*7777+b", New: "a"})
	require.NoError(t, err)
	require.Equal(t, strings.Replace(file, "a*7777+b", "a", 1), got)

	_, _, err = edited(t, file, match.Options{}, match.Edit{Old: "function f7777(a,c){return a*7777-c}", New: "x"})
	require.True(t, toolerr.Is(err, toolerr.NoMatch))
	require.ErrorContains(t, err, "function f7777(a,b){return a*7777+b}")
	require.Less(t, len(err.Error()), 1000)

	_, _, err = edited(t, file, match.Options{}, match.Edit{Old: "return a*15", New: "x"})
	require.True(t, toolerr.Is(err, toolerr.NotUnique))
	require.ErrorContains(t, err, "f15(a,b){return a*15+b}")
	require.ErrorContains(t, err, "and 1091 more places")
	require.Less(t, len(err.Error()), 10_000)
}

// TestManyPlaces: the list is bounded, the count is complete.
func TestManyPlaces(t *testing.T) {
	_, _, err := edited(t, strings.Repeat("x = 1\n", 3000), match.Options{}, match.Edit{Old: "x = 1", New: "y"})
	require.True(t, toolerr.Is(err, toolerr.NotUnique))
	require.ErrorContains(t, err, "3000 places")
	require.ErrorContains(t, err, "and 2980 more places")
	require.Less(t, strings.Count(err.Error(), "\n"), 50)

	_, _, err = edited(t, strings.Repeat("a", match.MaxPlaces+5), match.Options{}, match.Edit{Old: "a", New: "b", All: true})
	require.True(t, toolerr.Is(err, toolerr.LimitReached))
	_, _, err = edited(t, strings.Repeat("a", match.MaxPlaces+5), match.Options{}, match.Edit{Old: "a", New: "b"})
	require.True(t, toolerr.Is(err, toolerr.NotUnique))
	require.ErrorContains(t, err, "more than 1048576 places in the file; nothing was changed", "how many there are is not known")
	require.NotContains(t, err.Error(), "replace_all", "which is refused")
}
