package index

// bitsPerGram sets the size of a filter: with grams of three and four bytes,
// five bits separate files as well as ten or more with three bytes alone.
const bitsPerGram = 5

// filter is a Bloom filter that keeps the bits of a gram in a single word. The
// filter of a text without grams is empty.
type filter []uint64

// probe is the position of a gram in filters: place, scaled to their length,
// selects the word, and mask the bits.
type probe struct {
	mask  uint64 // bits in the word
	place uint32
}

// probeOf returns the probe of a gram by its code.
func probeOf(code uint32) probe {
	h := uint64(code+1) * 0x9E3779B97F4A7C15
	h = (h ^ h>>32) * 0xD6E8FEB86659FD93
	return probe{mask: 1<<(h&63) | 1<<(h>>6&63), place: uint32(h >> 32)}
}

// newFilter returns the filter of the set; nil if the set is empty.
func (g *grams) newFilter() filter {
	n := len(g.codes)
	if n == 0 {
		return nil
	}
	// Use the allocator's rounding as well.
	f := append(filter(nil), make(filter, (n*bitsPerGram+63)/64)...)
	f = f[:cap(f)]
	clear(f)
	for _, code := range g.codes {
		p := probeOf(code)
		f[uint64(p.place)*uint64(len(f))>>32] |= p.mask
	}
	return f
}

// mayHave reports whether the gram may be in the text. f must not be empty.
func (f filter) mayHave(p probe) bool {
	return f[uint64(p.place)*uint64(len(f))>>32]&p.mask == p.mask
}
