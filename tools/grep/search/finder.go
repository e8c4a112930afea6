package search

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// finder finds where one of some literals stands. Each is looked for by the
// bytes of it that are rarest in text: by one, if it is rare enough to jump
// from one to the next, or else by two at once, in eight places at a time.
type finder struct {
	needles []needle
	cost    float64 // nanoseconds a byte, roughly, with the lines it leads to
}

type needle struct {
	text []byte
	fold bool // text is in lower case and matches whatever the case
	sure bool // what it finds is a literal of the set, not a hint of one

	byPair       bool
	first, other int    // where the rarest bytes are
	value        [2]u64 // each eight times
	lower        [2]u64 // what is set in the text before it is compared
}

type u64 = uint64

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// What steps take, measured: they decide which way is taken, no more.
const (
	costByteScan = 0.04 // nanoseconds a byte
	costPairScan = 0.13
	costStop     = 5  // nanoseconds a place to look at
	costLine     = 90 // to match a line
	costDFA      = 1.8
)

// signs are the characters beyond ASCII that fold to s and k.
var signs = []string{"ſ", "\u212A"}

// newFinder returns a finder for a set that is not empty, or nil if to match
// every line is as fast.
func newFinder(set []Literal) *finder {
	f := &finder{}
	var withSign [2]bool
	for _, l := range set {
		n := newNeedle(l.Text, l.Fold, !l.loose)
		f.needles = append(f.needles, n)
		withSign[0] = withSign[0] || l.Fold && bytes.IndexByte(l.Text, 's') >= 0
		withSign[1] = withSign[1] || l.Fold && bytes.IndexByte(l.Text, 'k') >= 0
		f.cost += n.cost() + costLine*n.likelihood()
	}
	for i, sign := range signs {
		if withSign[i] {
			n := newNeedle([]byte(sign), false, false)
			f.needles = append(f.needles, n)
			f.cost += n.cost()
		}
	}
	if f.cost > costDFA {
		return nil
	}
	return f
}

func newNeedle(text []byte, fold, sure bool) needle {
	n := needle{text: text, fold: fold, sure: sure}
	for i := range text {
		if n.frequency(i) < n.frequency(n.first) {
			n.first = i
		}
	}
	if n.first == 0 && len(text) > 1 {
		n.other = 1
	}
	for i := range text {
		if i != n.first && n.frequency(i) < n.frequency(n.other) {
			n.other = i
		}
	}
	for i, at := range []int{n.first, n.other} {
		b := text[at]
		n.value[i] = ones * u64(b)
		if fold && b >= 'a' && b <= 'z' {
			n.lower[i] = ones * 0x20
		}
	}
	n.byPair = n.lower[0] != 0 || n.pairCost() < n.byteCost()
	return n
}

func (n *needle) frequency(i int) float64 {
	if n.fold {
		return foldedFrequency(n.text[i])
	}
	return float64(frequency[n.text[i]]) / 65536
}

func (n *needle) byteCost() float64 { return costByteScan + costStop*n.frequency(n.first) }
func (n *needle) pairCost() float64 {
	return costPairScan + costStop*n.frequency(n.first)*min(1, 4*n.frequency(n.other))
}

func (n *needle) cost() float64 {
	if n.byPair {
		return n.pairCost()
	}
	return n.byteCost()
}

// likelihood is how often the needle may stand in text, a byte.
func (n *needle) likelihood() float64 {
	p := n.frequency(n.first)
	if len(n.text) > 1 {
		p *= min(1, 4*n.frequency(n.other))
	}
	for range len(n.text) - 2 {
		p *= 0.3
	}
	return p
}

// is reports whether the needle stands at text[at:].
func (n *needle) is(text []byte, at int) bool {
	if at < 0 || at+len(n.text) > len(text) {
		return false
	}
	there := text[at : at+len(n.text)]
	if !n.fold {
		return bytes.Equal(there, n.text)
	}
	for i, b := range n.text {
		c := there[i]
		if c >= 'A' && c <= 'Z' {
			c += 32
		}
		if c != b {
			return false
		}
	}
	return true
}

// find returns a place in the first line, from the line of from on, that has
// a literal, or -1. sure is false if the literal may not be there, or say less
// than the pattern.
func (f *finder) find(text []byte, from int) (at int, sure bool) {
	if len(f.needles) == 1 {
		n := &f.needles[0]
		return n.find(text, from, len(text)), n.sure
	}
	// All are looked for in a part of the text before the next, so that one
	// that is not there does not have all of it read for each that is.
	for part := 512; from < len(text); part = min(2*part, 1<<14) {
		end, best := min(from+part, len(text)), -1
		for i := range f.needles {
			n := &f.needles[i]
			if at := n.find(text, from, end); at >= 0 {
				best, end, sure = at, at, n.sure
			}
		}
		if best >= 0 {
			return best, sure
		}
		from = end
	}
	return -1, false
}

// find returns where, in [from, to), the needle begins first, or -1. Its end
// may lie beyond to.
func (n *needle) find(text []byte, from, to int) int {
	to = min(to, len(text)-len(n.text)+1)
	if n.byPair {
		return n.findPair(text, from, to)
	}
	b := n.text[n.first]
	for from < to {
		i := bytes.IndexByte(text[from+n.first:to+n.first], b)
		if i < 0 {
			return -1
		}
		if from += i; text[from+n.other] == n.text[n.other] && n.is(text, from) {
			return from
		}
		from++
	}
	return -1
}

func (n *needle) findPair(text []byte, from, to int) int {
	if from >= to {
		return -1
	}
	a, b := text[from+n.first:to+n.first], text[from+n.other:to+n.other]
	va, vb, la, lb := n.value[0], n.value[1], n.lower[0], n.lower[1]
	at := from
	for len(a) >= 16 && len(b) >= 16 {
		x := (binary.LittleEndian.Uint64(a) | la) ^ va | (binary.LittleEndian.Uint64(b) | lb) ^ vb
		y := (binary.LittleEndian.Uint64(a[8:]) | la) ^ va | (binary.LittleEndian.Uint64(b[8:]) | lb) ^ vb
		x, y = (x-ones)&^x&highs, (y-ones)&^y&highs
		if x|y != 0 {
			for ; x != 0; x &= x - 1 {
				if i := at + bits.TrailingZeros64(x)/8; n.is(text, i) {
					return i
				}
			}
			for ; y != 0; y &= y - 1 {
				if i := at + 8 + bits.TrailingZeros64(y)/8; n.is(text, i) {
					return i
				}
			}
		}
		a, b, at = a[16:], b[16:], at+16
	}
	for ; at < to; at++ {
		if text[at+n.first]|byte(la) == byte(va) && text[at+n.other]|byte(lb) == byte(vb) && n.is(text, at) {
			return at
		}
	}
	return -1
}
