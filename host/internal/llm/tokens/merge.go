package tokens

import "container/heap"

// merger counts the tokens of a piece by byte pair encoding: it begins with single
// bytes and joins the two adjacent parts that form the token of the lowest rank, until
// no two parts form a token. It is reused for further pieces.
type merger struct {
	piece      []byte
	next, prev []int32
	pairs      pairs
}

// pair is two adjacent parts: begin of the first, end of the second, and the rank of
// the token that they form.
type pair struct {
	rank       uint32
	begin, end int32
}

// pairs is a heap. The lowest rank is first, and of equal ranks the pair that begins
// first.
type pairs []pair

func (p pairs) Len() int { return len(p) }
func (p pairs) Less(i, j int) bool {
	return p[i].rank < p[j].rank || p[i].rank == p[j].rank && p[i].begin < p[j].begin
}
func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

// Push implements heap.Interface.
func (p *pairs) Push(x any) { *p = append(*p, x.(pair)) }

// Pop implements heap.Interface.
func (p *pairs) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}

// count returns the number of tokens of a piece of text.
func (m *merger) count(v *Vocabulary, piece []byte) int {
	if len(piece) == 1 || v.rank(piece) != noRank {
		return 1
	}
	n := int32(len(piece))
	m.piece, m.pairs = piece, m.pairs[:0]
	m.next, m.prev = m.next[:0], m.prev[:0] // begin of the next and of the previous part, by begin of a part
	for i := range n {
		m.next, m.prev = append(m.next, i+1), append(m.prev, i-1)
	}
	for i := range n - 1 {
		if rank := v.rank(piece[i : i+2]); rank != noRank {
			m.pairs = append(m.pairs, pair{rank, i, i + 2})
		}
	}
	heap.Init(&m.pairs)
	parts := int(n)
	for len(m.pairs) > 0 {
		best := heap.Pop(&m.pairs).(pair)
		middle := m.next[best.begin]
		if middle < 0 || middle >= n || m.next[middle] != best.end {
			continue // a part of the pair was joined with another one meanwhile
		}
		m.next[best.begin], m.next[middle] = best.end, -1
		parts--
		if best.end < n {
			m.prev[best.end] = best.begin
			m.pushPair(v, best.begin, m.next[best.end])
		}
		if before := m.prev[best.begin]; before >= 0 {
			m.pushPair(v, before, best.end)
		}
	}
	return parts
}

// pushPair queues the bytes begin to end of the piece for merging, if they are a token
// of v.
func (m *merger) pushPair(v *Vocabulary, begin, end int32) {
	if rank := v.rank(m.piece[begin:end]); rank != noRank {
		heap.Push(&m.pairs, pair{rank, begin, end})
	}
}
