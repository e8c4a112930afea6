package textdiff

import "time"

// Run means that a[A:A+N] equals b[B:B+N].
type Run struct{ A, B, N int }

// The limits of Align. They are sizes instead of times, so that the same input
// gives the same result on every machine.
const (
	maxLines = 1 << 20 // elements of a and of b, without equal ends: each needs a rune
	maxExact = 8 << 10 // elements of a and b together that go-diff compares in one call
	maxWork  = 1 << 28 // steps of all calls, counted as squares of the differences found
)

// maxTime ends Align on a machine that hangs. Tests that expect equal results
// raise it.
var maxTime = 10 * time.Second

// Align returns the runs of equal elements (lines or words) of a and b, in
// ascending order of both. It searches for the largest number of equal
// elements, and finds it for most inputs of up to maxExact elements, not
// counting equal ends. It first splits larger inputs at elements that are
// unique in both. Beyond the limits, elements count as different.
//
// Unless stopped is nil, Align calls it between steps of at most about 100 ms.
// If stopped returns true, Align returns the runs found so far.
func Align[T comparable](a, b []T, stopped func() bool) []Run {
	head, tail := commonEnds(a, b)
	s := &aligner{stopped: stopped, deadline: time.Now().Add(maxTime)}
	s.addRun(0, 0, head)
	midA, midB := a[head:len(a)-tail], b[head:len(b)-tail]
	if n, m := len(midA), len(midB); n > 0 && m > 0 && max(n, m) <= maxLines {
		x, y := assignRunes(s, midA, midB, head)
		s.align(x, y, 0)
	}
	s.addRun(len(a)-tail, len(b)-tail, tail)
	return s.runs
}

// commonEnds returns the number of equal elements at the beginning and, of the
// others, at the end.
func commonEnds[T comparable](a, b []T) (head, tail int) {
	n := min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// sequence is a part of a list whose elements are replaced by runes. indices
// holds the index of each element in the whole list.
type sequence struct {
	runes   []rune
	indices []int32
}

// slice returns the elements from index from to index to.
func (s sequence) slice(from, to int) sequence { return sequence{s.runes[from:to], s.indices[from:to]} }

// aligner collects the runs of one call of Align.
type aligner struct {
	runs         []Run
	work         int
	deadline     time.Time
	stopped      func() bool
	reachedLimit bool         // stopped, or out of work or time
	occurrences  []occurrence // for each rune; all zero between calls of shared
}

// addRun adds the run a, b, n, which must come after the runs already added,
// and joins it with the last one if they touch.
func (s *aligner) addRun(a, b, n int) {
	if last := len(s.runs) - 1; last >= 0 && n > 0 && s.runs[last].A+s.runs[last].N == a && s.runs[last].B+s.runs[last].N == b {
		s.runs[last].N += n
	} else if n > 0 {
		s.runs = append(s.runs, Run{a, b, n})
	}
}

// addMatch adds the runs of n equal elements, which begin at index from of a
// and index with of b. Their indices in the whole lists may have gaps.
func (s *aligner) addMatch(a, b sequence, from, with, n int) {
	for i := range n {
		s.addRun(int(a.indices[from+i]), int(b.indices[with+i]), 1)
	}
}

// align adds the runs of two sequences. depth is the number of splits so far.
func (s *aligner) align(a, b sequence, depth int) {
	head, tail := commonEnds(a.runes, b.runes)
	s.addMatch(a, b, 0, 0, head)
	if midA, midB := a.slice(head, len(a.indices)-tail), b.slice(head, len(b.indices)-tail); len(midA.indices) > 0 && len(midB.indices) > 0 {
		s.alignMiddle(midA, midB, depth)
	}
	s.addMatch(a, b, len(a.indices)-tail, len(b.indices)-tail, tail)
}

// alignMiddle adds the runs of two sequences that neither begin nor end with equal
// elements. depth is as for align.
func (s *aligner) alignMiddle(a, b sequence, depth int) {
	a, b, anchors := s.commonElements(a, b, depth)
	switch {
	case len(a.indices) == 0 || s.checkLimits():
	case len(a.indices)+len(b.indices) <= maxExact:
		for _, r := range s.diffExact(a.runes, b.runes) {
			s.addMatch(a, b, r.A, r.B, r.N)
		}
	case len(anchors) > 0:
		i, j := 0, 0
		for _, anchor := range append(anchors, Run{A: len(a.indices), B: len(b.indices)}) {
			s.align(a.slice(i, anchor.A), b.slice(j, anchor.B), depth+1)
			s.addMatch(a, b, anchor.A, anchor.B, anchor.N)
			i, j = anchor.A+anchor.N, anchor.B+anchor.N
		}
	default:
		s.alignWindows(a, b)
	}
}

// checkLimits reports whether Align must end: because stopped returned true, or
// a limit of work or time is reached.
func (s *aligner) checkLimits() bool {
	s.reachedLimit = s.reachedLimit || s.work > maxWork || s.stopped != nil && s.stopped() || time.Now().After(s.deadline)
	return s.reachedLimit
}

// alignWindows adds the runs of two sequences that are too long for go-diff and
// have no unique elements. It compares a piece of each, keeps the runs that end
// well before the end of the piece, and continues after them.
func (s *aligner) alignWindows(a, b sequence) {
	const size, sure = maxExact / 2, maxExact / 2 * 3 / 4
	i, j := 0, 0
	for i < len(a.indices) && j < len(b.indices) && !s.checkLimits() {
		if head, _ := commonEnds(a.runes[i:], b.runes[j:]); head > 0 {
			s.addMatch(a, b, i, j, head)
			i, j = i+head, j+head
			continue
		}
		endA, endB := min(i+size, len(a.indices)), min(j+size, len(b.indices))
		last := endA == len(a.indices) && endB == len(b.indices)
		nextI, nextJ := i, j
		for _, r := range s.diffExact(a.runes[i:endA], b.runes[j:endB]) {
			if !last && max(r.A, r.B) >= sure {
				break
			}
			s.addMatch(a, b, i+r.A, j+r.B, r.N)
			nextI, nextJ = i+r.A+r.N, j+r.B+r.N
		}
		if last {
			return
		}
		if nextI == i { // nothing in common: skip both pieces
			nextI, nextJ = min(i+sure, len(a.indices)), min(j+sure, len(b.indices))
		}
		i, j = nextI, nextJ
	}
}
