//go:build !amd64

package search

const costPairScan = 0.1 // nanoseconds a byte

// nextPair returns the first block of 64 positions, counted from i, that may
// have a position with rareBytes[0] in a and rareBytes[1] in b, and a bit for
// each such position. If no block has one, it returns the start of the
// incomplete last block and 0.
func nextPair(a, b []byte, i int, rareBytes *[2]u64, compareMask u64) (at int, mask u64) {
	return nextPairWords(a, b, i, rareBytes, compareMask)
}
