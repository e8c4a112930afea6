package search

import "golang.org/x/sys/cpu"

// pairAVX2 checks n positions, 64 at a time. at is the start of the first block
// with a position that has v[0] in a and v[1] in b, compared in the bits of
// keep; mask has a bit for each such position, the lowest for the first. If no
// block has one, mask is 0, and less than 64 positions are left from at on.
//
//go:noescape
func pairAVX2(a, b *byte, n int, v *[2]u64, keep u64) (at int, mask u64)

const costPairScan = 0.05 // nanoseconds a byte

// nextPair returns the first block of 64 positions, counted from i, that may
// have a position with rareBytes[0] in a and rareBytes[1] in b, and a bit for
// each such position. If no block has one, it returns the start of the
// incomplete last block and 0.
func nextPair(a, b []byte, i int, rareBytes *[2]u64, compareMask u64) (at int, mask u64) {
	if len(a)-i < pairBlock {
		return i, 0
	}
	if !cpu.X86.HasAVX2 {
		return nextPairWords(a, b, i, rareBytes, compareMask)
	}
	b = b[:len(a)]
	at, mask = pairAVX2(&a[i], &b[i], len(a)-i, rareBytes, compareMask)
	return i + at, mask
}
