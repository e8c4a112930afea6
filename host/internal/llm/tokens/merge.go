package tokens

import "container/heap"

// merger counts the tokens of one piece after another: its bytes are joined,
// of two that follow one another those first that are the token of the lowest
// rank, until no two are one (byte pair encoding).
type merger struct {
	piece      []byte
	next, prev []int32
	pairs      pairs
}

// pair is two parts that follow one another: where the first begins, where the
// second ends, and which token they are together.
type pair struct {
	rank       uint32
	begin, end int32
}

// pairs is a heap: the lowest rank first, of equal ones the first.
type pairs []pair

func (p pairs) Len() int { return len(p) }
func (p pairs) Less(i, j int) bool {
	return p[i].rank < p[j].rank || p[i].rank == p[j].rank && p[i].begin < p[j].begin
}
func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

// Push is heap.Interface's.
func (p *pairs) Push(x any) { *p = append(*p, x.(pair)) }

// Pop is heap.Interface's.
func (p *pairs) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}

func (m *merger) count(v *Vocabulary, piece []byte) int {
	if len(piece) == 1 || v.rank(piece) != none {
		return 1
	}
	n := int32(len(piece))
	m.piece, m.pairs = piece, m.pairs[:0]
	m.next, m.prev = m.next[:0], m.prev[:0] // of the part that begins there; next: where the one after it does
	for i := range n {
		m.next, m.prev = append(m.next, i+1), append(m.prev, i-1)
	}
	for i := range n - 1 {
		if rank := v.rank(piece[i : i+2]); rank != none {
			m.pairs = append(m.pairs, pair{rank, i, i + 2})
		}
	}
	heap.Init(&m.pairs)
	parts := int(n)
	for len(m.pairs) > 0 {
		best := heap.Pop(&m.pairs).(pair)
		middle := m.next[best.begin]
		if middle < 0 || middle >= n || m.next[middle] != best.end {
			continue // one of the two is part of another by now
		}
		m.next[best.begin], m.next[middle] = best.end, -1
		parts--
		if best.end < n {
			m.prev[best.end] = best.begin
			m.offer(v, best.begin, m.next[best.end])
		}
		if before := m.prev[best.begin]; before >= 0 {
			m.offer(v, before, best.end)
		}
	}
	return parts
}

func (m *merger) offer(v *Vocabulary, begin, end int32) {
	if rank := v.rank(m.piece[begin:end]); rank != none {
		heap.Push(&m.pairs, pair{rank, begin, end})
	}
}
