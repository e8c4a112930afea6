package match

import (
	"bytes"
	"math/bits"

	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// needle finds a pattern in time linear in text and pattern, for any content.
// It looks for the pattern's byte that is rarest in the text. If that byte is
// too frequent, it uses bytes.Index, and if that would be slow as well, a
// rolling hash.
type needle struct {
	pattern    []byte
	checker    *cancelcheck.Checker
	rareOffset int // offset in pattern of its rarest byte
	method     searchMethod
	falseHits  int // candidates that did not match
	scanned    int // bytes
	compared   int // bytes compared in false hits
}

// searchMethod says how a needle finds candidates.
type searchMethod int

const (
	undecided  searchMethod = iota // before the first search
	byRareByte                     // the pattern's rarest byte
	byPrefix                       // bytes.Index of the pattern's first maxPrefix bytes
	byHash                         // rolling hash
)

// maxPrefix bounds the part of a pattern passed to bytes.Index, in bytes.
const maxPrefix = 48

// searchInterval bounds the text searched between two checks of the context, in
// bytes.
const searchInterval = 1 << 20

// hitCost is the cost of a candidate, in bytes scanned.
const hitCost = 16

// indexFrom returns the offset of the first occurrence of the pattern in text
// at or after from. It returns -1 if the pattern does not occur, or if checker
// stops the search. The pattern must not be empty, and text must be the same in
// all calls.
func (n *needle) indexFrom(text []byte, from int) int {
	if n.method == undecided {
		n.rareOffset, n.method = rarestByteOffset(text, n.pattern[:min(len(n.pattern), maxPrefix)]), byRareByte
	}
	head := n.pattern[:min(len(n.pattern), maxPrefix)]
	for from+len(n.pattern) <= len(text) {
		last := min(from+searchInterval, len(text)-len(n.pattern)) // last possible beginning
		var at int
		switch n.method {
		case byRareByte:
			at = bytes.IndexByte(text[from+n.rareOffset:last+n.rareOffset+1], n.pattern[n.rareOffset])
		case byPrefix:
			at = bytes.Index(text[from:last+len(head)], head)
		case byHash:
			return n.indexByHash(text, from)
		}
		notFound := at < 0
		if notFound {
			at = last - from
		}
		from, n.scanned = from+at, n.scanned+at+1
		if n.checker.Stopped(at + hitCost) {
			return -1
		}
		if notFound {
			from++
			continue
		}
		same := commonPrefixLen(text[from:], n.pattern)
		if same == len(n.pattern) {
			return from
		}
		n.falseHits, n.compared = n.falseHits+1, n.compared+same
		switch {
		case n.compared > 2*len(text)+1<<20:
			n.method = byHash
		case n.method == byRareByte && n.falseHits*16 > n.scanned+1<<12:
			n.method = byPrefix
		}
		from++
	}
	return -1
}

// rarestByteOffset returns the offset in pattern of the byte that is rarest in
// a sample of the text.
func rarestByteOffset(text, pat []byte) int {
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

// commonPrefixLen returns the length of the common prefix of a and b, in bytes.
func commonPrefixLen(a, b []byte) int {
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

// hashPrime is the modulus of the rolling hash, 2^61-1.
const hashPrime = 1<<61 - 1

// mulModPrime returns a*b modulo hashPrime.
func mulModPrime(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	sum := lo&hashPrime + (lo>>61 | hi<<3)
	if sum >= hashPrime {
		sum -= hashPrime
	}
	return sum
}

// indexByHash returns the same as indexFrom, by the algorithm of Karp and Rabin. It
// returns -1 also if checker stops it.
func (n *needle) indexByHash(text []byte, from int) int {
	const base = 0x1F3D5B79A8642C1
	m := len(n.pattern)
	if from+m > len(text) {
		return -1
	}
	var want, have uint64
	high := uint64(1) // base to the power of m-1
	for i, c := range n.pattern {
		want = (mulModPrime(want, base) + uint64(c)) % hashPrime
		have = (mulModPrime(have, base) + uint64(text[from+i])) % hashPrime
		if i > 0 {
			high = mulModPrime(high, base)
		}
		if i%checkInterval == 0 && n.checker.Stopped(checkInterval) {
			return -1
		}
	}
	for {
		if from%checkInterval == 0 && n.checker.Stopped(checkInterval) {
			return -1
		}
		if have == want && bytes.Equal(text[from:from+m], n.pattern) {
			return from
		}
		if from+m >= len(text) {
			return -1
		}
		have = (have + hashPrime - mulModPrime(high, uint64(text[from]))) % hashPrime
		have = (mulModPrime(have, base) + uint64(text[from+m])) % hashPrime
		from++
	}
}
