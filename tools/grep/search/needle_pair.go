package search

import (
	"encoding/binary"
	"math/bits"
)

// pairBlock is the number of positions in a block of nextPair.
const pairBlock = 64

// The lowest, and the highest, bit of each byte of a word.
const (
	ones     = 0x0101010101010101
	highBits = 0x8080808080808080
)

// findPair returns the same as find. It compares the needle only at positions where
// both of its rare bytes occur.
func (n *needle) findPair(text []byte, from, to int) int {
	if from >= to {
		return -1
	}
	a, b := text[from+n.rarePos[0]:to+n.rarePos[0]], text[from+n.rarePos[1]:to+n.rarePos[1]]
	i, failed := 0, 0
	for len(a)-i >= pairBlock {
		at, mask := nextPair(a, b, i, &n.rareBytes, n.compareMask)
		for i = at; mask != 0; mask &= mask - 1 {
			place := from + at + bits.TrailingZeros64(mask)
			if n.matchesAt(text, place) {
				return place
			}
			if failed++; n.prefersKMP(failed, place-from) {
				return n.findKMP(text, place+1, to)
			}
			i = at + pairBlock
		}
	}
	// Check the last positions by words; the last word may overlap.
	for ; i < len(a); i += 8 {
		if i+8 > len(a) {
			i = max(len(a)-8, 0)
		}
		mask := u64(1)<<(len(a)-i) - 1
		if len(a) >= 8 {
			mask = zeroBytes(((loadWord(a[i:]) ^ n.rareBytes[0]) | (loadWord(b[i:]) ^ n.rareBytes[1])) & n.compareMask)
		}
		for ; mask != 0; mask &= mask - 1 {
			if place := from + i + bits.TrailingZeros64(mask); n.matchesAt(text, place) {
				return place
			}
		}
	}
	return -1
}

// nextPairWords is nextPair in portable code, eight positions at a time. A set
// bit may be wrong if a lower bit is right.
func nextPairWords(a, b []byte, i int, rareBytes *[2]u64, compareMask u64) (at int, mask u64) {
	b = b[:len(a)]
	va, vb := rareBytes[0], rareBytes[1]
	for ; i+pairBlock <= len(a); i += pairBlock {
		p, q := (*[pairBlock]byte)(a[i:]), (*[pairBlock]byte)(b[i:])
		for half := 0; half < pairBlock; half += 32 {
			x := ((loadWord(p[half:]) ^ va) | (loadWord(q[half:]) ^ vb)) & compareMask
			y := ((loadWord(p[half+8:]) ^ va) | (loadWord(q[half+8:]) ^ vb)) & compareMask
			z := ((loadWord(p[half+16:]) ^ va) | (loadWord(q[half+16:]) ^ vb)) & compareMask
			w := ((loadWord(p[half+24:]) ^ va) | (loadWord(q[half+24:]) ^ vb)) & compareMask
			if ((x-ones)&^x|(y-ones)&^y|(z-ones)&^z|(w-ones)&^w)&highBits != 0 {
				mask |= (zeroBytes(x) | zeroBytes(y)<<8 | zeroBytes(z)<<16 | zeroBytes(w)<<24) << half
			}
		}
		if mask != 0 {
			return i, mask
		}
	}
	return i, 0
}

// zeroBytes returns a mask with a bit for each byte of x that is 0, and
// possibly for bytes above such a byte.
func zeroBytes(x u64) u64 {
	return ((x - ones) &^ x & highBits) >> 7 * 0x0102040810204080 >> 56
}

// loadWord returns the first eight bytes of b, the first in the lowest bits.
func loadWord(b []byte) u64 { return binary.LittleEndian.Uint64(b) }
