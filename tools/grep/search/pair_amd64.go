package search

import "golang.org/x/sys/cpu"

// pairAVX2 looks at n places at a time of 64, from the first on: at is where
// the first 64 begin of which one or more have v[0] in a and v[1] in b, by the
// bits of keep, and mask tells which they are, the first by its lowest bit. mask
// is 0 if there are none; then less than 64 places are left, from at on.
//
//go:noescape
func pairAVX2(a, b *byte, n int, v *[2]u64, keep u64) (at int, mask u64)

const costPairScan = 0.05 // nanoseconds a byte

// nextPair returns the first block of 64 places, counted from i, in which a and
// b hold the values together, and a bit for each place of it where they may;
// or where less than a block is left, and 0.
func nextPair(a, b []byte, i int, v *[2]u64, keep u64) (at int, mask u64) {
	if len(a)-i < pairBlock {
		return i, 0
	}
	if !cpu.X86.HasAVX2 {
		return nextPairWords(a, b, i, v, keep)
	}
	b = b[:len(a)]
	at, mask = pairAVX2(&a[i], &b[i], len(a)-i, v, keep)
	return i + at, mask
}
