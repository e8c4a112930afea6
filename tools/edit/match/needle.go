package match

import (
	"bytes"
	"math/bits"
)

// needle finds a pattern in time linear in text and pattern, whatever they
// are. bytes.Index is, for a short one.
type needle struct {
	pat  []byte
	work int // bytes compared in vain
	hard bool
}

// headSize is how much of a long pattern bytes.Index looks for.
const headSize = 48

// next returns where the pattern is next in text from a place on, or -1.
func (n *needle) next(text []byte, from int) int {
	if len(n.pat) <= headSize {
		if at := bytes.Index(text[from:], n.pat); at >= 0 {
			return from + at
		}
		return -1
	}
	for !n.hard {
		at := bytes.Index(text[from:], n.pat[:headSize])
		if at < 0 || from+at+len(n.pat) > len(text) {
			return -1
		}
		from += at
		same := headSize + equalBytes(text[from+headSize:], n.pat[headSize:])
		if same == len(n.pat) {
			return from
		}
		n.work += same
		n.hard = n.work > 2*len(text)+1<<20
		from++
	}
	return n.roll(text, from)
}

// equalBytes returns how many bytes two texts begin with in common.
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

// roll is the search of Karp and Rabin.
func (n *needle) roll(text []byte, from int) int {
	const base = 0x1F3D5B79A8642C1
	m := len(n.pat)
	if from+m > len(text) {
		return -1
	}
	hash := func(b []byte) (h uint64) {
		for _, c := range b {
			h = (mulmod(h, base) + uint64(c)) % prime
		}
		return h
	}
	want, have, high := hash(n.pat), hash(text[from:from+m]), uint64(1)
	for range m - 1 {
		high = mulmod(high, base)
	}
	for {
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
