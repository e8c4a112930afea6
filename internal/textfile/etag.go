package textfile

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// ChunkSize is the unit in which content is hashed, in bytes, and the smallest
// distance between two entries of a line index. Etags depend on it, so it must
// never change.
const ChunkSize = 256 << 10

// Etag is a hash of a file's bytes: the xxHash64 of content of up to one chunk,
// otherwise the xxHash64 of the chunks' hashes and the length, so that chunks
// can be hashed in parallel. It distinguishes versions of a file; it does not
// protect against deliberate collisions.
type Etag uint64

// String returns the 8 hex digits that models see.
func (e Etag) String() string { return fmt.Sprintf("%08x", uint64(e)>>32) }

// Full returns all 16 hex digits.
func (e Etag) Full() string { return fmt.Sprintf("%016x", uint64(e)) }

// Matches reports whether given identifies this content. given is an etag of 8
// to 16 hex digits from a model; anything else does not match.
func (e Etag) Matches(given string) bool {
	if len(given) < 8 || len(given) > 16 {
		return false
	}
	v, err := strconv.ParseUint(given, 16, 64)
	return err == nil && v == uint64(e)>>(64-4*len(given))
}

// EtagOf returns the etag of content in memory.
func EtagOf(data []byte) Etag {
	if len(data) <= ChunkSize {
		return Etag(xxhash.Sum64(data))
	}
	sums := make([]uint64, 0, len(data)/ChunkSize+1)
	for rest := data; len(rest) > 0; {
		n := min(len(rest), ChunkSize)
		sums = append(sums, xxhash.Sum64(rest[:n]))
		rest = rest[n:]
	}
	return combineHashes(sums, int64(len(data)))
}

// combineHashes returns the etag of content of size bytes, given the hashes of
// all its chunks, in order.
func combineHashes(sums []uint64, size int64) Etag {
	if size <= ChunkSize {
		if len(sums) == 0 {
			return Etag(xxhash.Sum64(nil))
		}
		return Etag(sums[0])
	}
	h := xxhash.New()
	var b [8]byte
	for _, sum := range append(sums, uint64(size)) {
		binary.LittleEndian.PutUint64(b[:], sum)
		// A Digest's Write never fails.
		_, _ = h.Write(b[:])
	}
	return Etag(h.Sum64())
}

// LineSum returns a hash of a line with its ending. It shows later whether the
// line has changed.
func LineSum(line []byte) uint32 { return uint32(xxhash.Sum64(line) >> 32) }
