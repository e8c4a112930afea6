// Package editdistance counts typing errors, for suggestions of the intended
// word.
package editdistance

// Between returns the smallest number of edits that turn a into b: a letter
// inserted, deleted, replaced, or swapped with its neighbour (optimal string
// alignment). If there are more than limit, it returns limit+1. Only a band of
// the table, limit cells to each side, is computed, so long texts cost no more
// than short ones.
func Between(a, b string, limit int) int {
	if a == b {
		return 0
	}
	x, y := withoutCommonEnds([]rune(a), []rune(b))
	if abs(len(x)-len(y)) > limit {
		return limit + 1
	}
	far := limit + 1
	before, last, row := make([]int, len(y)+2), make([]int, len(y)+2), make([]int, len(y)+2)
	for j := range last {
		last[j] = min(j, far)
	}
	for i := 1; i <= len(x); i++ {
		from, to := max(1, i-limit), min(len(y), i+limit)
		row[from-1] = far
		if from == 1 {
			row[0] = min(i, far)
		}
		least := row[from-1]
		for j := from; j <= to; j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost, far)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		row[to+1] = far
		if least > limit {
			return far
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

// withoutCommonEnds returns the two texts without their common prefix and
// suffix.
func withoutCommonEnds(x, y []rune) ([]rune, []rune) {
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return x, y
}

// abs returns the absolute value of n.
func abs(n int) int { return max(n, -n) }
