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

// threeCode and fourCode take the last bytes read, the newest in the lowest
// bits.
func threeCode(last uint32) uint32 { return last << 8 * 0x9E3779B1 >> (32 - codeBits) }

func fourCode(last uint32) uint32 { return last * 0x85EBCA77 >> (32 - codeBits) }

func lower(c byte) byte {
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

// unfold appends text to dst with those characters replaced by the letters.
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

// grams is the set of grams of one text.
type grams struct {
	seen  [codes / 64]uint64
	codes []uint32 // those in seen
}

// read adds the grams of text.
func (g *grams) read(text []byte, pause func() error) error {
	var unfolded []byte
	for from := 0; from < len(text); from += pieceSize {
		// A gram across the boundary begins at most three bytes before it, or
		// earlier if it contains such characters, by their additional length.
		piece := text[max(0, from-3):min(len(text), from+pieceSize)]
		g.addAll(piece)
		if wide := text[max(0, from-4*len(kelvin)):min(len(text), from+pieceSize)]; hasFolding(wide) {
			unfolded = unfold(unfolded[:0], wide)
			g.addAll(unfolded)
		}
		if len(text) > pieceSize {
			if err := pause(); err != nil {
				return err
			}
		}
	}
	return nil
}

// addAll adds the grams within text.
func (g *grams) addAll(text []byte) {
	if len(text) < 3 || g.saturated() {
		return
	}
	last := uint32(lower(text[0]))<<8 | uint32(lower(text[1]))
	last = last<<8 | uint32(lower(text[2]))
	g.add(threeCode(last))
	for _, c := range text[3:] {
		last = last<<8 | uint32(lower(c))
		g.add(threeCode(last))
		g.add(fourCode(last))
	}
}

func (g *grams) add(code uint32) {
	word, bit := &g.seen[code/64%uint32(len(g.seen))], uint64(1)<<(code%64)
	if *word&bit == 0 {
		*word |= bit
		g.codes = append(g.codes, code)
	}
}

func (g *grams) saturated() bool { return len(g.codes) > maxGrams }

// clear empties the set.
func (g *grams) clear() {
	for _, code := range g.codes {
		g.seen[code/64] = 0
	}
	g.codes = g.codes[:0]
}
