package search

import (
	"bytes"
	"cmp"
	"slices"
)

type u64 = uint64

type needle struct {
	text []byte
	fold bool // text is in lower case and matches in any case
	sure bool // it finds a literal of the set, not only a hint of one

	byPair bool    // look for its two rarest bytes together, instead of one
	border []int32 // for findSteadily; nil if text is too short to need it
	rare   [2]int  // positions of its rarest bytes, the rarest first
	value  [2]u64  // those bytes, each eight times
	keep   u64     // the bits of them to compare, without the bit of case
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
	if len(text) > shortNeedle {
		n.border = borders(text)
	}
	n.byPair = fold && rarest >= 'a' && rarest <= 'z' || len(text) > 1 && n.pairCost() < n.byteCost()
	return n
}

func (n *needle) frequency(i int) float64 {
	if n.fold {
		return foldedFrequency(n.text[i])
	}
	return float64(frequency[n.text[i]]) / 65536
}

// together estimates the frequency of the first count rare bytes at their
// positions in the needle.
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

// likelihood estimates the frequency of the needle in text, per byte.
func (n *needle) likelihood() float64 {
	p := n.together(2)
	for range len(n.text) - 2 {
		p *= 0.3
	}
	return p
}

// is reports whether text[at:] begins with the needle.
func (n *needle) is(text []byte, at int) bool {
	if at < 0 || at+len(n.text) > len(text) {
		return false
	}
	there := text[at : at+len(n.text)]
	if !n.fold {
		return bytes.Equal(there, n.text)
	}
	for i, b := range n.text {
		if lowerByte(there[i]) != b {
			return false
		}
	}
	return true
}

// find returns the first position in [from, to) at which the needle begins, or
// -1. Its end may be beyond to.
func (n *needle) find(text []byte, from, to int) int {
	to = min(to, len(text)-len(n.text)+1)
	if n.byPair {
		return n.findPair(text, from, to)
	}
	first, other := n.rare[0], n.rare[1]
	for start, failed := from, 0; from < to; from++ {
		i := bytes.IndexByte(text[from+first:to+first], n.text[first])
		if i < 0 {
			return -1
		}
		if from += i; (text[from+other]^n.text[other])&byte(n.keep) == 0 {
			if n.is(text, from) {
				return from
			}
			if failed++; n.tooOften(failed, from-start) {
				return n.findSteadily(text, from+1, to)
			}
		}
	}
	return -1
}
