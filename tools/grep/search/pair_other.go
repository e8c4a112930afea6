//go:build !amd64

package search

const costPairScan = 0.1 // nanoseconds a byte

// nextPair returns the first block of 64 places, counted from i, in which a and
// b hold the values together, and a bit for each place of it where they may;
// or where less than a block is left, and 0.
func nextPair(a, b []byte, i int, v *[2]u64, keep u64) (at int, mask u64) {
	return nextPairWords(a, b, i, v, keep)
}
