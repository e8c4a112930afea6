package search

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// finder finds where one of some literals stands. Each is looked for by the
// bytes of it that are rarest in text: by one, if it is rare enough to jump
// from one to the next, or else by two at once, in eight places at a time.
type finder struct {
	needles []needle
	starts  bool    // it finds where the literals begin, and nothing else
	cost    float64 // nanoseconds a byte, roughly, with the lines it leads to
}

type needle struct {
	text []byte
	fold bool // text is in lower case and matches whatever the case
	sure bool // what it finds is a literal of the set, not a hint of one

	byPair bool   // its two rarest bytes are looked for together, not the one
	rare   [2]int // where its rarest bytes are, the rarest first
	value  [2]u64 // those bytes, each eight times
	keep   u64    // the bits of them that are compared: not those of case
}

type u64 = uint64

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// What steps take, measured: they decide which way is taken, no more.
const (
	costByteScan = 0.035 // nanoseconds a byte
	costPairScan = 0.1
	costStop     = 15 // nanoseconds a place to look at
	costLine     = 90 // to match a line
	costDFA      = 1.8
)

// newFinder returns a finder for a set that is not empty, or nil if to match
// every line is as fast. Lines that it finds are matched, unless it is pure.
func newFinder(set []Literal, pure bool) *finder {
	f := &finder{starts: true}
	var withS, withK bool
	for _, l := range set {
		n := newNeedle(l.Text, l.Fold, !l.loose)
		f.needles = append(f.needles, n)
		withS = withS || l.Fold && bytes.IndexByte(l.Text, 's') >= 0
		withK = withK || l.Fold && bytes.IndexByte(l.Text, 'k') >= 0
		if f.cost += n.cost(); !pure || l.loose {
			f.cost += costLine * n.likelihood()
		}
	}
	if withS {
		f.hint(longS)
	}
	if withK {
		f.hint(kelvin)
	}
	if f.cost > costDFA {
		return nil
	}
	return f
}

// hint has the finder find a character that may be part of a folded literal.
func (f *finder) hint(r rune) {
	n := newNeedle([]byte(string(r)), false, false)
	f.needles = append(f.needles, n)
	f.cost += n.cost()
	f.starts = false
}

func newNeedle(text []byte, fold, sure bool) needle {
	n := needle{text: text, fold: fold, sure: sure, keep: ^u64(0)}
	order := make([]int, len(text))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(n.frequency(i), n.frequency(j)) })
	for i := range n.rare {
		n.rare[i] = order[min(i, len(order)-1)]
		b := text[n.rare[i]]
		n.value[i] = ones * u64(b)
		if fold && b >= 'a' && b <= 'z' {
			n.keep = ^u64(ones * 0x20)
		}
	}
	rarest := text[n.rare[0]]
	n.byPair = fold && rarest >= 'a' && rarest <= 'z' || len(text) > 1 && n.pairCost() < n.byteCost()
	return n
}

func (n *needle) frequency(i int) float64 {
	if n.fold {
		return foldedFrequency(n.text[i])
	}
	return float64(frequency[n.text[i]]) / 65536
}

// together estimates how often the first count of the rare bytes stand where
// the needle has them.
func (n *needle) together(count int) float64 {
	p := n.frequency(n.rare[0])
	for _, i := range n.rare[1:min(count, len(n.text))] {
		p *= min(1, 6*n.frequency(i))
	}
	return p
}

func (n *needle) byteCost() float64 { return costByteScan + costStop*n.together(1) }
func (n *needle) pairCost() float64 { return costPairScan + costStop*n.together(2) }

func (n *needle) cost() float64 {
	if n.byPair {
		return n.pairCost()
	}
	return n.byteCost()
}

// likelihood is how often the needle may stand in text, a byte.
func (n *needle) likelihood() float64 {
	p := n.together(2)
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
	first, other := n.rare[0], n.rare[1]
	for from < to {
		i := bytes.IndexByte(text[from+first:to+first], n.text[first])
		if i < 0 {
			return -1
		}
		if from += i; (text[from+other]^n.text[other])&byte(n.keep) == 0 && n.is(text, from) {
			return from
		}
		from++
	}
	return -1
}

// findPair looks at 32 places at a time, as four words of eight: a byte of a
// word becomes 0 where both of the rare bytes stand.
func (n *needle) findPair(text []byte, from, to int) int {
	if from >= to {
		return -1
	}
	a, b := text[from+n.rare[0]:to+n.rare[0]], text[from+n.rare[1]:to+n.rare[1]]
	i := 0
	for {
		if n.keep != ^u64(0) {
			i = skipFolded(a, b, i, n.value, n.keep)
		} else {
			i = skip(a, b, i, n.value)
		}
		for end := min(i+32, len(a)-7); i < end; i += 8 {
			x := ((load(a[i:]) ^ n.value[0]) | (load(b[i:]) ^ n.value[1])) & n.keep
			for x = (x - ones) &^ x & highs; x != 0; x &= x - 1 {
				if at := from + i + bits.TrailingZeros64(x)/8; n.is(text, at) {
					return at
				}
			}
		}
		if len(a)-i < 8 {
			break
		}
	}
	for ; i < len(a); i++ {
		if n.is(text, from+i) {
			return from + i
		}
	}
	return -1
}

// skip returns the first block of 32 places, counted from i, that has a zero
// in it, or the last places that fill no block.
func skip(a, b []byte, i int, v [2]u64) int {
	b = b[:len(a)]
	va, vb := v[0], v[1]
	for ; i+32 <= len(a); i += 32 {
		p, q := (*[32]byte)(a[i:i+32]), (*[32]byte)(b[i:i+32])
		x := (load(p[0:]) ^ va) | (load(q[0:]) ^ vb)
		y := (load(p[8:]) ^ va) | (load(q[8:]) ^ vb)
		z := (load(p[16:]) ^ va) | (load(q[16:]) ^ vb)
		w := (load(p[24:]) ^ va) | (load(q[24:]) ^ vb)
		if ((x-ones)&^x|(y-ones)&^y|(z-ones)&^z|(w-ones)&^w)&highs != 0 {
			break
		}
	}
	return i
}

// skipFolded does the same with only the bits of keep compared.
func skipFolded(a, b []byte, i int, v [2]u64, keep u64) int {
	b = b[:len(a)]
	va, vb := v[0], v[1]
	for ; i+32 <= len(a); i += 32 {
		p, q := (*[32]byte)(a[i:i+32]), (*[32]byte)(b[i:i+32])
		x := ((load(p[0:]) ^ va) | (load(q[0:]) ^ vb)) & keep
		y := ((load(p[8:]) ^ va) | (load(q[8:]) ^ vb)) & keep
		z := ((load(p[16:]) ^ va) | (load(q[16:]) ^ vb)) & keep
		w := ((load(p[24:]) ^ va) | (load(q[24:]) ^ vb)) & keep
		if ((x-ones)&^x|(y-ones)&^y|(z-ones)&^z|(w-ones)&^w)&highs != 0 {
			break
		}
	}
	return i
}

func load(b []byte) u64 { return binary.LittleEndian.Uint64(b) }
