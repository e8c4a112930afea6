package tokens

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// compressedVocabulary is the vocabulary in the order of its ranks: how many tokens there
// are, 4 bytes, little-endian; the length of each, a byte; and all of them,
// one after another; together compressed (RFC 1951).
//
//go:embed o200k_base.bin
var compressedVocabulary []byte

// A Vocabulary is a Counter that counts exactly. It is safe for concurrent use.
type Vocabulary struct {
	bytes   []byte   // all tokens, one after another
	offsets []uint32 // begin of each token in bytes, by rank, and the end
	slots   []uint32 // hash table with rank+1 of each token; 0: empty
}

// LoadVocabulary decompresses the vocabulary o200k_base, which takes about 30 ms each time.
// It fails only if the program is damaged.
func LoadVocabulary() (*Vocabulary, error) {
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(compressedVocabulary)))
	if err != nil {
		return nil, fmt.Errorf("vocabulary o200k_base: %w", err)
	}
	if len(raw) < 4 {
		return nil, errors.New("vocabulary o200k_base: it is empty")
	}
	n := int(binary.LittleEndian.Uint32(raw))
	if len(raw) < 4+n {
		return nil, errors.New("vocabulary o200k_base: it is cut off")
	}
	v := &Vocabulary{bytes: raw[4+n:], offsets: make([]uint32, n+1), slots: make([]uint32, 1<<bits.Len(uint(2*n)))}
	for i, length := range raw[4 : 4+n] {
		v.offsets[i+1] = v.offsets[i] + uint32(length)
	}
	if int(v.offsets[n]) != len(v.bytes) {
		return nil, errors.New("vocabulary o200k_base: it is damaged")
	}
	for rank := range n {
		slot := v.findSlot(v.token(rank))
		v.slots[slot] = uint32(rank) + 1
	}
	return v, nil
}

// token returns the bytes of the token with a rank.
func (v *Vocabulary) token(rank int) []byte { return v.bytes[v.offsets[rank]:v.offsets[rank+1]] }

// findSlot returns the index of a token in slots, or of the free slot for it.
func (v *Vocabulary) findSlot(token []byte) int {
	h := uint64(14695981039346656037) // FNV-1a
	for _, b := range token {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h ^= h >> 29
	for at := int(h) & (len(v.slots) - 1); ; at = (at + 1) & (len(v.slots) - 1) {
		rank := v.slots[at]
		if rank == 0 || bytes.Equal(v.token(int(rank-1)), token) {
			return at
		}
	}
}

// noRank is the rank of a text that is no token.
const noRank = ^uint32(0)

// rank returns the rank of a token, noRank if it is not in the vocabulary.
func (v *Vocabulary) rank(token []byte) uint32 {
	return v.slots[v.findSlot(token)] - 1 // 0-1 is noRank
}

// Count returns the number of tokens of a text. Text that looks like a special token
// (such as <|endoftext|>) counts as ordinary text.
func (v *Vocabulary) Count(text string) int {
	count := 0
	var m merger
	for text != "" {
		n, _ := nextPiece(text)
		for piece := text[:n]; piece != ""; {
			part := piece[:min(len(piece), maxPiece)]
			count += m.count(v, []byte(part))
			piece = piece[len(part):]
		}
		text = text[n:]
	}
	return count
}

// maxPiece bounds the memory for a word: a longer word is counted in parts, each of
// which can add one token too many.
const maxPiece = 64 << 10
