package textdiff

import (
	"hash/maphash"
	"math/bits"
	"unicode/utf8"
)

// oneSided marks an element that occurs in only one of the lists.
const oneSided = -1

// nthRune returns the n-th rune that a string can hold, for n from 0 to
// maxLines. It skips surrogates, and the replacement rune for invalid bytes.
func nthRune(n int) rune {
	const surrogates, first, last = 0xDFFF - 0xD800 + 1, 0xD800, 0xDFFF
	r := rune(n)
	if r >= first {
		r += surrogates
	}
	if r >= utf8.RuneError {
		r++
	}
	return r
}

// elementTable is a hash table that finds the elements of a list by value. A
// map would need several times its memory.
type elementTable[T comparable] struct {
	list  []T
	seed  maphash.Seed
	slots []int32 // index in list plus one; 0: free
}

// newElementTable returns an empty table for the elements of list.
func newElementTable[T comparable](list []T) *elementTable[T] {
	return &elementTable[T]{list, maphash.MakeSeed(), make([]int32, 1<<bits.Len(uint(2*len(list))))}
}

// slot returns the slot of the element equal to e, or the free slot (0) for it.
func (t *elementTable[T]) slot(e T) *int32 {
	mask := uint64(len(t.slots) - 1)
	at := maphash.Comparable(t.seed, e) & mask
	for t.slots[at] != 0 && t.list[t.slots[at]-1] != e {
		at = (at + 1) & mask
	}
	return &t.slots[at]
}

// assignRunes returns a and b as sequences in which equal elements have the same rune. It
// omits elements that occur in only one of the lists. first is the index of a[0] and b[0]
// in the whole lists. It returns empty sequences if s reaches a limit.
func assignRunes[T comparable](s *aligner, a, b []T, first int) (x, y sequence) {
	const often = 1 << 16 // number of elements processed between two checks of s
	known, inA, inB := newElementTable(a), make([]rune, len(a)), make([]rune, len(b))
	distinct := 0
	for i, e := range a {
		if i%often == often-1 && s.checkLimits() {
			return sequence{}, sequence{}
		}
		slot := known.slot(e)
		if *slot != 0 {
			inA[i] = inA[*slot-1]
			continue
		}
		*slot, inA[i] = int32(i+1), nthRune(distinct)
		distinct++
	}
	inBoth := make([]bool, int(nthRune(distinct))+1)
	for j, e := range b {
		if j%often == often-1 && s.checkLimits() {
			return sequence{}, sequence{}
		}
		inB[j] = oneSided
		if slot := known.slot(e); *slot != 0 {
			inB[j] = inA[*slot-1]
			inBoth[inB[j]] = true
		}
	}
	x = newSequence(inA, first).filter(func(r rune) bool { return inBoth[r] })
	y = newSequence(inB, first).filter(func(r rune) bool { return r != oneSided })
	return x, y
}

// newSequence returns a sequence whose indices begin at first.
func newSequence(runes []rune, first int) sequence {
	at := make([]int32, len(runes))
	for i := range at {
		at[i] = int32(first + i)
	}
	return sequence{runes, at}
}

// filter returns the elements whose runes keep accepts.
func (s sequence) filter(keep func(rune) bool) sequence {
	n := 0
	for _, r := range s.runes {
		if keep(r) {
			n++
		}
	}
	if n == len(s.runes) {
		return s
	}
	kept := sequence{make([]rune, 0, n), make([]int32, 0, n)}
	for i, r := range s.runes {
		if keep(r) {
			kept.runes, kept.indices = append(kept.runes, r), append(kept.indices, s.indices[i])
		}
	}
	return kept
}
