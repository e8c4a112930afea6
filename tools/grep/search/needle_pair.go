package search

import (
	"encoding/binary"
	"math/bits"
)

// pairBlock is the number of positions in a block of nextPair.
const pairBlock = 64

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// findPair finds the needle at positions where both of its rare bytes occur.
func (n *needle) findPair(text []byte, from, to int) int {
	if from >= to {
		return -1
	}
	a, b := text[from+n.rare[0]:to+n.rare[0]], text[from+n.rare[1]:to+n.rare[1]]
	i, failed := 0, 0
	for len(a)-i >= pairBlock {
		at, mask := nextPair(a, b, i, &n.value, n.keep)
		for i = at; mask != 0; mask &= mask - 1 {
			place := from + at + bits.TrailingZeros64(mask)
			if n.is(text, place) {
				return place
			}
			if failed++; n.tooOften(failed, place-from) {
				return n.findSteadily(text, place+1, to)
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
			mask = zeros(((load(a[i:]) ^ n.value[0]) | (load(b[i:]) ^ n.value[1])) & n.keep)
		}
		for ; mask != 0; mask &= mask - 1 {
			if place := from + i + bits.TrailingZeros64(mask); n.is(text, place) {
				return place
			}
		}
	}
	return -1
}

// nextPairWords is nextPair, eight positions at a time. A set bit may be wrong
// if a lower one is right.
func nextPairWords(a, b []byte, i int, v *[2]u64, keep u64) (at int, mask u64) {
	b = b[:len(a)]
	va, vb := v[0], v[1]
	for ; i+pairBlock <= len(a); i += pairBlock {
		p, q := (*[pairBlock]byte)(a[i:]), (*[pairBlock]byte)(b[i:])
		for half := 0; half < pairBlock; half += 32 {
			x := ((load(p[half:]) ^ va) | (load(q[half:]) ^ vb)) & keep
			y := ((load(p[half+8:]) ^ va) | (load(q[half+8:]) ^ vb)) & keep
			z := ((load(p[half+16:]) ^ va) | (load(q[half+16:]) ^ vb)) & keep
			w := ((load(p[half+24:]) ^ va) | (load(q[half+24:]) ^ vb)) & keep
			if ((x-ones)&^x|(y-ones)&^y|(z-ones)&^z|(w-ones)&^w)&highs != 0 {
				mask |= (zeros(x) | zeros(y)<<8 | zeros(z)<<16 | zeros(w)<<24) << half
			}
		}
		if mask != 0 {
			return i, mask
		}
	}
	return i, 0
}

// zeros returns a bit for each byte of x that is 0, and possibly for bytes
// above such a byte.
func zeros(x u64) u64 {
	return ((x - ones) &^ x & highs) >> 7 * 0x0102040810204080 >> 56
}

func load(b []byte) u64 { return binary.LittleEndian.Uint64(b) }
