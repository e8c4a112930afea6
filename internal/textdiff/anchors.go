package textdiff

import "slices"

// maxSplits bounds how often a gap between unique elements is split again.
const maxSplits = 24

// occurrence counts the occurrences of a rune in two sequences. inB is its
// index in the second.
type occurrence struct{ countA, countB, inB int32 }

// commonElements returns those elements of a and b that occur in both. If they
// are too many for go-diff, it also returns anchors: runs of one element that
// occurs once in each sequence, in the same order in both, as many as possible.
// The anchors hold indices of x and y.
func (s *aligner) commonElements(a, b sequence, depth int) (x, y sequence, anchors []Run) {
	if last := int(max(slices.Max(a.runes), slices.Max(b.runes))); last >= len(s.occurrences) {
		s.occurrences = make([]occurrence, last+1)
	}
	for _, r := range a.runes {
		s.occurrences[r].countA++
	}
	for _, r := range b.runes {
		s.occurrences[r].countB++
	}
	x = a.filter(func(r rune) bool { return s.occurrences[r].countB > 0 })
	y = b.filter(func(r rune) bool { return s.occurrences[r].countA > 0 })
	if len(x.indices)+len(y.indices) > maxExact && depth < maxSplits {
		anchors = longestAscending(s.uniquePairs(x.runes, y.runes))
	}
	for _, r := range a.runes {
		s.occurrences[r] = occurrence{}
	}
	for _, r := range b.runes {
		s.occurrences[r] = occurrence{}
	}
	return x, y, anchors
}

// pair holds the indices of an element in two sequences.
type pair struct{ a, b int32 }

// uniquePairs returns the elements that occur once in each sequence, according
// to s.occurrences.
func (s *aligner) uniquePairs(x, y []rune) []pair {
	for j, r := range y {
		s.occurrences[r].inB = int32(j)
	}
	once := func(r rune) bool { return s.occurrences[r].countA == 1 && s.occurrences[r].countB == 1 }
	n := 0
	for _, r := range x {
		if once(r) {
			n++
		}
	}
	pairs := make([]pair, 0, n)
	for i, r := range x {
		if once(r) {
			pairs = append(pairs, pair{int32(i), s.occurrences[r].inB})
		}
	}
	return pairs
}

// longestAscending returns the longest selection of pairs that ascends in both
// a and b (patience sorting), as runs of one element. pairs must ascend in a.
func longestAscending(pairs []pair) []Run {
	// piles[k] is the last pair of the best chain of k+1 pairs.
	var piles []int32
	previous := make([]int32, len(pairs)) // the previous pair in each pair's chain
	for i, p := range pairs {
		k, _ := slices.BinarySearchFunc(piles, p.b, func(top, b int32) int { return int(pairs[top].b) - int(b) })
		if k > 0 {
			previous[i] = piles[k-1]
		}
		if k == len(piles) {
			piles = append(piles, int32(i))
		} else {
			piles[k] = int32(i)
		}
	}
	if len(piles) == 0 {
		return nil
	}
	chain := make([]Run, len(piles))
	for k, i := len(piles)-1, piles[len(piles)-1]; k >= 0; k-- {
		chain[k] = Run{int(pairs[i].a), int(pairs[i].b), 1}
		i = previous[i]
	}
	return chain
}
