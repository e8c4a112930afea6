package topk_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/topk"
)

type value struct{ key, number int }

func before(a, b value) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
}

func TestTop(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		offset, limit := r.IntN(30), 1+r.IntN(30)
		tops := make([]topk.Top[value], 1+r.IntN(4))
		for i := range tops {
			tops[i] = topk.New(offset, limit, before)
		}
		var all []value
		for i := range r.IntN(200) {
			v := value{r.IntN(20), i}
			all = append(all, v)
			tops[r.IntN(len(tops))].Add(v)
		}
		slices.SortFunc(all, before)
		from := min(offset, len(all))
		require.Equal(t, slices.Clone(all[from:min(from+limit, len(all))]), slices.Clone(topk.Merge(tops, offset)))
	}
}

func TestTakes(t *testing.T) {
	none := topk.New(0, 0, before)
	require.False(t, none.WouldKeep(value{1, 1}))
	none.Add(value{1, 1})
	two := topk.New(1, 1, before)
	for _, v := range []value{{5, 0}, {3, 0}, {4, 0}, {3, 1}, {3, 0}} {
		kept := two.WouldKeep(v)
		two.Add(v)
		require.Equal(t, v.key < 5 || v.number == 0, kept, "%v", v)
	}
	require.False(t, two.WouldKeep(value{9, 9}))
	require.Equal(t, []value{{3, 0}, {3, 0}}, topk.Merge([]topk.Top[value]{two}, 0))
	require.Empty(t, topk.Merge([]topk.Top[value]{none}, 0))
	all := topk.New(math.MaxInt, math.MaxInt, before)
	all.Add(value{1, 1})
	require.Equal(t, []value{{1, 1}}, topk.Merge([]topk.Top[value]{all}, 0))
	require.Empty(t, topk.Merge([]topk.Top[value]{two}, math.MaxInt))
}
