package textdiff

import (
	"hash/maphash"
	"slices"
)

// Run says that N elements from A on in the one are those from B on in the
// other.
type Run struct{ A, B, N int }

// Hashes returns what Align compares: a hash of each string, good only beside
// others of the same process.
func Hashes(texts []string) []uint64 {
	sums := make([]uint64, len(texts))
	for i, text := range texts {
		sums[i] = maphash.String(seed, text)
	}
	return sums
}

// seed is drawn once a process, so that no file can be made to collide.
var seed = maphash.MakeSeed()

// The bounds of Align: how deep gaps are split at unique elements, and how
// many differences Myers' algorithm looks for in one gap.
const (
	maxDepth       = 24
	maxDifferences = 512
)

// Align returns runs of equal elements, ascending in both: a good choice of
// the longest such, at a bounded cost. What differs in more than its bounds
// has no runs.
func Align(a, b []uint64) []Run {
	var runs []Run
	align(a, b, 0, 0, 0, func(r Run) {
		if n := len(runs); n > 0 && runs[n-1].A+runs[n-1].N == r.A && runs[n-1].B+runs[n-1].N == r.B {
			runs[n-1].N += r.N
			return
		}
		runs = append(runs, r)
	})
	return runs
}

// align yields the runs of a and b, which begin at atA and atB of the whole.
func align(a, b []uint64, atA, atB, depth int, yield func(Run)) {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if head > 0 {
		yield(Run{atA, atB, head})
	}
	restA, restB := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(restA) > 0 && len(restB) > 0 {
		inner(restA, restB, atA+head, atB+head, depth, yield)
	}
	if tail > 0 {
		yield(Run{atA + len(a) - tail, atB + len(b) - tail, tail})
	}
}

func inner(a, b []uint64, atA, atB, depth int, yield func(Run)) {
	var anchors []Run
	if depth < maxDepth {
		anchors = uniqueInBoth(a, b)
	}
	if len(anchors) == 0 {
		for _, r := range myers(a, b) {
			yield(Run{atA + r.A, atB + r.B, r.N})
		}
		return
	}
	i, j := 0, 0
	for _, anchor := range append(anchors, Run{A: len(a), B: len(b)}) {
		align(a[i:anchor.A], b[j:anchor.B], atA+i, atB+j, depth+1, yield)
		if anchor.N > 0 {
			yield(Run{atA + anchor.A, atB + anchor.B, anchor.N})
		}
		i, j = anchor.A+anchor.N, anchor.B+anchor.N
	}
}

// uniqueInBoth returns elements that stand once in either, the most that are
// in the same order in both: patience sorting.
func uniqueInBoth(a, b []uint64) []Run {
	type place struct{ inA, inB, countA, countB int }
	places := make(map[uint64]place, len(a))
	for i, h := range a {
		p := places[h]
		p.inA, p.countA = i, p.countA+1
		places[h] = p
	}
	for j, h := range b {
		if p, ok := places[h]; ok {
			p.inB, p.countB = j, p.countB+1
			places[h] = p
		}
	}
	var pairs []Run
	for i, h := range a {
		if p := places[h]; p.countA == 1 && p.countB == 1 {
			pairs = append(pairs, Run{i, p.inB, 1})
		}
	}
	// piles[k] is the pair that ends the best chain of k+1 pairs.
	var piles, previous []int
	previous = make([]int, len(pairs))
	for i, pair := range pairs {
		k, _ := slices.BinarySearchFunc(piles, pair.B, func(top, b int) int { return pairs[top].B - b })
		previous[i] = -1
		if k > 0 {
			previous[i] = piles[k-1]
		}
		if k == len(piles) {
			piles = append(piles, i)
		} else {
			piles[k] = i
		}
	}
	if len(piles) == 0 {
		return nil
	}
	chain := make([]Run, len(piles))
	for k, i := len(piles)-1, piles[len(piles)-1]; k >= 0; k-- {
		chain[k] = pairs[i]
		i = previous[i]
	}
	return chain
}

// myers returns the runs of a shortest edit script (Myers 1986), or none if
// it needs more than maxDifferences.
func myers(a, b []uint64) []Run {
	bound := min(len(a)+len(b), maxDifferences)
	// reached[d][k+d] is how far into a diagonal k comes with d differences.
	var reached [][]int32
	for d := 0; d <= bound; d++ {
		row := make([]int32, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				x = step(reached[d-1], d, k)
			}
			y := x - k
			if x > len(a) || y > len(b) {
				row[k+d] = int32(x) // off the end: leads nowhere
				continue
			}
			for x < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			row[k+d] = int32(x)
			if x == len(a) && y == len(b) {
				return trace(append(reached, row), k)
			}
		}
		reached = append(reached, row)
	}
	return nil
}

// step returns how far diagonal k comes with its d-th difference, before any
// equal elements, given the row before.
func step(row []int32, d, k int) int {
	at := func(k int) int32 { return row[k+d-1] }
	if k == -d || k != d && at(k-1) < at(k+1) {
		return int(at(k + 1)) // one more of b
	}
	return int(at(k-1)) + 1 // one less of a
}

// trace goes the way back from the end, which diagonal k reached last.
func trace(reached [][]int32, k int) []Run {
	var runs []Run
	for d := len(reached) - 1; d >= 0; d-- {
		x := int(reached[d][k+d])
		from := 0
		if d > 0 {
			from = step(reached[d-1], d, k)
		}
		if n := x - from; n > 0 {
			runs = append(runs, Run{from, from - k, n})
		}
		if d > 0 {
			row := reached[d-1]
			if k == -d || k != d && row[k-1+d-1] < row[k+1+d-1] {
				k++
			} else {
				k--
			}
		}
	}
	slices.Reverse(runs)
	return runs
}
