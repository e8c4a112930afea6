package dirtree

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompareNatural(t *testing.T) {
	want := []string{".a", "0", "00", "01", "1", "2", "10", "99999999999999999999999", "A", "a", "a01", "a1", "a2", "A2b", "a10", "a10b2", "a10b10", "B", "b", "chapter 2", "chapter 10", "é"}
	for i, a := range want {
		for j, b := range want {
			got := compareNatural(a, b)
			switch {
			case i < j:
				require.Negative(t, got, "%q < %q", a, b)
			case i > j:
				require.Positive(t, got, "%q > %q", a, b)
			default:
				require.Zero(t, got)
			}
		}
	}
}

// FuzzCompareNatural checks that compareNatural is a total order, as sorting
// requires.
func FuzzCompareNatural(f *testing.F) {
	f.Add("a01", "a1", "a001")
	f.Add("A", "a", "B")
	f.Add("a0b", "a00", "a")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		require.Equal(t, compareNatural(a, b), -compareNatural(b, a))
		require.Equal(t, a == b, compareNatural(a, b) == 0)
		list := []string{a, b, c}
		slices.SortFunc(list, compareNatural)
		require.LessOrEqual(t, compareNatural(list[0], list[1]), 0)
		require.LessOrEqual(t, compareNatural(list[1], list[2]), 0)
		require.LessOrEqual(t, compareNatural(list[0], list[2]), 0, "transitive")
	})
}
