package index

import "bytes"

// A gram is a sequence of three or four bytes in lower case. It is identified
// by a hash of codeBits bits: enough that few grams of one file collide, few
// enough that a bitmap of all codes stays in a processor's cache.
const (
	codeBits = 20
	codes    = 1 << codeBits
)

// maxGrams is the number of distinct grams above which codes no longer
// distinguish files, as in several megabytes of random text.
const maxGrams = codes / 2

// pieceSize is the amount of text added between two calls of pause, in bytes.
const pieceSize = 1 << 20

// threeCode returns the code of the gram of the last three bytes read. The
// newest byte is in the lowest bits of last.
func threeCode(last uint32) uint32 { return last << 8 * 0x9E3779B1 >> (32 - codeBits) }

// fourCode returns the code of the gram of the last four bytes read.
func fourCode(last uint32) uint32 { return last * 0x85EBCA77 >> (32 - codeBits) }

// lowerASCII returns c in lower case if it is an ASCII letter, and otherwise c.
func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// The non-ASCII characters that fold to ASCII letters.
const (
	kelvin = "\u212a" // k
	longS  = "\u017f" // s
)

// hasFolding reports whether text has a character that unfold replaces.
func hasFolding(text []byte) bool {
	return bytes.Contains(text, []byte(kelvin)) || bytes.Contains(text, []byte(longS))
}

// unfold appends text to dst, with kelvin and longS replaced by the letters.
func unfold(dst, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == kelvin[0] && bytes.HasPrefix(text[i:], []byte(kelvin)):
			dst, i = append(dst, 'k'), i+len(kelvin)-1
		case c == longS[0] && bytes.HasPrefix(text[i:], []byte(longS)):
			dst, i = append(dst, 's'), i+len(longS)-1
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// grams is the set of grams of one text. The zero value is empty.
type grams struct {
	seen  [codes / 64]uint64 // a bit for each code
	codes []uint32           // the codes in seen
}

// addText adds the grams of text. It calls pause between pieces of a large
// text, and returns its error.
func (g *grams) addText(text []byte, pause func() error) error {
	var unfolded []byte
	for from := 0; from < len(text); from += pieceSize {
		// A gram across the boundary begins at most three bytes before it, or
		// earlier if it contains such characters, by their additional length.
		piece := text[max(0, from-3):min(len(text), from+pieceSize)]
		g.addPiece(piece)
		if wide := text[max(0, from-4*len(kelvin)):min(len(text), from+pieceSize)]; hasFolding(wide) {
			unfolded = unfold(unfolded[:0], wide)
			g.addPiece(unfolded)
		}
		if len(text) > pieceSize {
			if err := pause(); err != nil {
				return err
			}
		}
	}
	return nil
}

// addPiece adds the grams within text, unless the set is saturated.
func (g *grams) addPiece(text []byte) {
	if len(text) < 3 || g.isSaturated() {
		return
	}
	last := uint32(lowerASCII(text[0]))<<8 | uint32(lowerASCII(text[1]))
	last = last<<8 | uint32(lowerASCII(text[2]))
	g.addCode(threeCode(last))
	for _, c := range text[3:] {
		last = last<<8 | uint32(lowerASCII(c))
		g.addCode(threeCode(last))
		g.addCode(fourCode(last))
	}
}

// addCode adds the code of a gram to the set, if it is new.
func (g *grams) addCode(code uint32) {
	word, bit := &g.seen[code/64%uint32(len(g.seen))], uint64(1)<<(code%64)
	if *word&bit == 0 {
		*word |= bit
		g.codes = append(g.codes, code)
	}
}

// isSaturated reports whether the set has more than maxGrams, so that a filter
// would be useless.
func (g *grams) isSaturated() bool { return len(g.codes) > maxGrams }

// clear empties the set.
func (g *grams) clear() {
	for _, code := range g.codes {
		g.seen[code/64] = 0
	}
	g.codes = g.codes[:0]
}
