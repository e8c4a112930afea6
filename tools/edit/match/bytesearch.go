package match

import (
	"bytes"
	"math/bits"

	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// needle finds a pattern in time linear in text and pattern, for any content.
// It looks for the pattern's byte that is rarest in the text; if that is
// everywhere it uses bytes.Index, and if that would be slow, too, a rolling
// hash.
type needle struct {
	pat     []byte
	checker *cancelcheck.Checker
	rare    int // offset of the rarest byte
	way     searchMethod
	hits    int // failed candidates
	seen    int // bytes scanned
	work    int // bytes compared in failed candidates
}

type searchMethod int

const (
	fresh searchMethod = iota
	byByte
	byHead
	byHash
)

// headSize bounds the part of a pattern passed to bytes.Index.
const headSize = 48

// maxLook bounds the text searched between two checks of the context, in bytes.
const maxLook = 1 << 20

// perHit is the cost of a candidate, in bytes scanned.
const perHit = 16

// next returns the next position of the pattern in text from a position on, or
// -1.
func (n *needle) next(text []byte, from int) int {
	if n.way == fresh {
		n.rare, n.way = rarest(text, n.pat[:min(len(n.pat), headSize)]), byByte
	}
	head := n.pat[:min(len(n.pat), headSize)]
	for from+len(n.pat) <= len(text) {
		last := min(from+maxLook, len(text)-len(n.pat)) // last possible beginning
		var at int
		switch n.way {
		case byByte:
			at = bytes.IndexByte(text[from+n.rare:last+n.rare+1], n.pat[n.rare])
		case byHead:
			at = bytes.Index(text[from:last+len(head)], head)
		case byHash:
			return n.roll(text, from)
		}
		none := at < 0
		if none {
			at = last - from
		}
		from, n.seen = from+at, n.seen+at+1
		if n.checker.Stopped(at + perHit) {
			return -1
		}
		if none {
			from++
			continue
		}
		same := equalBytes(text[from:], n.pat)
		if same == len(n.pat) {
			return from
		}
		n.hits, n.work = n.hits+1, n.work+same
		switch {
		case n.work > 2*len(text)+1<<20:
			n.way = byHash
		case n.way == byByte && n.hits*16 > n.seen+1<<12:
			n.way = byHead
		}
		from++
	}
	return -1
}

// rarest returns the offset of the pattern's byte that is rarest in a sample of
// the text.
func rarest(text, pat []byte) int {
	const samples, size = 16, 1 << 10
	var counts [256]int
	for i := range samples {
		start := i * (len(text) / samples)
		for _, c := range text[start:min(start+size, len(text))] {
			counts[c]++
		}
	}
	best := 0
	for i, c := range pat {
		if counts[c] < counts[pat[best]] {
			best = i
		}
	}
	return best
}

// equalBytes returns the length of the common prefix.
func equalBytes(a, b []byte) int {
	const step = 256
	n, end := 0, min(len(a), len(b))
	for n+step <= end && bytes.Equal(a[n:n+step], b[n:n+step]) {
		n += step
	}
	for n < end && a[n] == b[n] {
		n++
	}
	return n
}

// prime is the modulus of the rolling hash, 2^61-1.
const prime = 1<<61 - 1

func mulmod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	sum := lo&prime + (lo>>61 | hi<<3)
	if sum >= prime {
		sum -= prime
	}
	return sum
}

// roll searches by the method of Karp and Rabin.
func (n *needle) roll(text []byte, from int) int {
	const base = 0x1F3D5B79A8642C1
	m := len(n.pat)
	if from+m > len(text) {
		return -1
	}
	var want, have uint64
	high := uint64(1) // base to the power of m-1
	for i, c := range n.pat {
		want = (mulmod(want, base) + uint64(c)) % prime
		have = (mulmod(have, base) + uint64(text[from+i])) % prime
		if i > 0 {
			high = mulmod(high, base)
		}
		if i%stretch == 0 && n.checker.Stopped(stretch) {
			return -1
		}
	}
	for {
		if from%stretch == 0 && n.checker.Stopped(stretch) {
			return -1
		}
		if have == want && bytes.Equal(text[from:from+m], n.pat) {
			return from
		}
		if from+m >= len(text) {
			return -1
		}
		have = (have + prime - mulmod(high, uint64(text[from]))) % prime
		have = (mulmod(have, base) + uint64(text[from+m])) % prime
		from++
	}
}
