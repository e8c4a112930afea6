package walk

import (
	"cmp"
	"slices"
)

// FairShares divides a budget of rows among directories that want so many
// each: nobody gets more than it wants, and nobody gets less than another
// (but for a remainder of one) unless it wants no more. It keeps one big
// directory from starving its neighbours.
func FairShares(budget int, wants []int) []int {
	shares := make([]int, len(wants))
	order := make([]int, len(wants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wants[a], wants[b]) })
	for n, i := range order {
		shares[i] = max(0, min(wants[i], budget/(len(order)-n)))
		budget -= shares[i]
	}
	return shares
}
