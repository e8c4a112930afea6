package search

import (
	"bytes"
	"cmp"
	"slices"
)

// u64 is a word of eight bytes, or a mask with a bit for each position.
type u64 = uint64

// needle is one literal to search for.
type needle struct {
	text []byte // at least one byte
	fold bool   // text is in lower case and matches in any case
	sure bool   // it is a literal of the set, and implies all that the set implies; false: it only hints at one

	byPair      bool    // search for its two rarest bytes together, instead of for one
	borders     []int32 // for findKMP; nil if text is too short to need it
	rarePos     [2]int  // positions of its rarest bytes, the rarest first
	rareBytes   [2]u64  // those bytes, each eight times
	compareMask u64     // the bits of them to compare, without the bit of case
}

// newNeedle returns a needle for text. If fold is set, text is in lower case and matches
// in any case. sure means that a hit of the needle implies a hit of its set, see
// needle.sure.
func newNeedle(text []byte, fold, sure bool) needle {
	n := needle{text: text, fold: fold, sure: sure, compareMask: ^u64(0)}
	order := make([]int, len(text))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(n.frequencyAt(i), n.frequencyAt(j)) })
	for i := range n.rarePos {
		n.rarePos[i] = order[min(i, len(order)-1)]
		b := text[n.rarePos[i]]
		n.rareBytes[i] = ones * u64(b)
		if fold && b >= 'a' && b <= 'z' {
			n.compareMask = ^u64(ones * 0x20)
		}
	}
	rarest := text[n.rarePos[0]]
	if len(text) > shortNeedle {
		n.borders = borders(text)
	}
	n.byPair = fold && rarest >= 'a' && rarest <= 'z' || len(text) > 1 && n.pairCost() < n.byteCost()
	return n
}

// frequencyAt returns the frequency of the byte at index i of the needle,
// between 0 and 1.
func (n *needle) frequencyAt(i int) float64 {
	if n.fold {
		return foldedFrequency(n.text[i])
	}
	return float64(byteFrequency[n.text[i]]) / 65536
}

// rareFrequency estimates how often the first count of its rarest bytes occur
// together, as a share of the positions in a text.
func (n *needle) rareFrequency(count int) float64 {
	p := n.frequencyAt(n.rarePos[0])
	for _, i := range n.rarePos[1:min(count, len(n.text))] {
		p *= min(1, 6*n.frequencyAt(i))
	}
	return p
}

// byteCost returns the estimated cost of searching for the rarest byte, in
// nanoseconds for each byte of text.
func (n *needle) byteCost() float64 { return costByteScan + costCandidate*n.rareFrequency(1) }

// pairCost returns the estimated cost of searching for the two rarest bytes
// together, in nanoseconds for each byte of text.
func (n *needle) pairCost() float64 { return costPairScan + costCandidate*n.rareFrequency(2) }

// cost returns the estimated cost of the method that is used.
func (n *needle) cost() float64 {
	if n.byPair {
		return n.pairCost()
	}
	return n.byteCost()
}

// occurrenceRate estimates the number of occurrences of the needle for each
// byte of text.
func (n *needle) occurrenceRate() float64 {
	p := n.rareFrequency(2)
	for range len(n.text) - 2 {
		p *= 0.3
	}
	return p
}

// matchesAt reports whether text[at:] begins with the needle. at may be out of
// range.
func (n *needle) matchesAt(text []byte, at int) bool {
	if at < 0 || at+len(n.text) > len(text) {
		return false
	}
	there := text[at : at+len(n.text)]
	if !n.fold {
		return bytes.Equal(there, n.text)
	}
	for i, b := range n.text {
		if lowerASCIIByte(there[i]) != b {
			return false
		}
	}
	return true
}

// find returns the first position in [from, to) at which the needle begins, or
// -1. Its end may be after to.
func (n *needle) find(text []byte, from, to int) int {
	to = min(to, len(text)-len(n.text)+1)
	if n.byPair {
		return n.findPair(text, from, to)
	}
	first, other := n.rarePos[0], n.rarePos[1]
	for start, failed := from, 0; from < to; from++ {
		i := bytes.IndexByte(text[from+first:to+first], n.text[first])
		if i < 0 {
			return -1
		}
		if from += i; (text[from+other]^n.text[other])&byte(n.compareMask) == 0 {
			if n.matchesAt(text, from) {
				return from
			}
			if failed++; n.prefersKMP(failed, from-start) {
				return n.findKMP(text, from+1, to)
			}
		}
	}
	return -1
}
