package textfile

import (
	"bytes"
	"unicode"
	"unicode/utf16"
)

// GuessUTF16 returns the encoding of a file that begins with head if it is
// UTF-16 without a byte order mark, and "" otherwise. Scan gives the same
// result for nearly every file; GuessUTF16 reads only a little of a binary
// file.
func GuessUTF16(head []byte) Encoding {
	const quick = 512
	head = head[:min(len(head), HeadSize)&^1]
	if bytes.Count(head, []byte{0}) < 2 { // a single NUL may occur anywhere by chance
		return ""
	}
	for i := 0; i < len(head); i += 2 {
		if head[i]|head[i+1] == 0 { // no text contains U+0000
			return ""
		}
	}
	if first := head[:min(len(head), quick)]; !areMostlyTextUnits(first, 0) && !areMostlyTextUnits(first, 1) {
		return ""
	}
	if len(head) > quick && guessUTF16(head[:quick]) == "" {
		return ""
	}
	return guessUTF16(head)
}

// areMostlyTextUnits reports whether most UTF-16 units of b are in the Unicode
// blocks that most text uses. big is 1 if b is big-endian, 0 if it is
// little-endian. A third of random units are not in these blocks.
func areMostlyTextUnits(b []byte, big int) bool {
	usual := 0
	for i := 1 - big; i < len(b); i += 2 {
		switch hi := b[i]; {
		case hi < 0x0F, hi >= 0x20 && hi < 0x28, hi == 0x30, hi >= 0x4E && hi < 0xA0, hi >= 0xAC && hi < 0xE0, hi >= 0xFE:
			usual++
		}
	}
	return usual*10 >= len(b)/2*8
}

// guessUTF16 returns the byte order of UTF-16 text without a byte order mark:
// the order in which the units are plausible text, if they are not in the
// other.
// It returns "" if the text is not UTF-16.
func guessUTF16(head []byte) Encoding {
	head = head[:len(head)&^1]
	if len(head) < 4 || bytes.IndexByte(head, 0) < 0 {
		// Text without any blank, digit or line ending has no NUL; it cannot be
		// distinguished from other encodings.
		return ""
	}
	little, big := utf16Plausibility(head, false), utf16Plausibility(head, true)
	switch {
	case little >= 0.9 && little > big:
		return UTF16LE
	case big >= 0.9 && big > little:
		return UTF16BE
	}
	return ""
}

// utf16Plausibility returns the fraction of the UTF-16 units of b that are
// plausible text, from 0 to 1. It returns 0 if a unit is impossible; bad
// control characters may make it negative.
func utf16Plausibility(b []byte, bigEndian bool) float64 {
	units := make([]uint16, len(b)/2)
	for i := range units {
		lo, hi := b[2*i], b[2*i+1]
		if bigEndian {
			lo, hi = hi, lo
		}
		units[i] = uint16(hi)<<8 | uint16(lo)
	}
	if last := units[len(units)-1]; utf16.IsSurrogate(rune(last)) {
		units = units[:len(units)-1] // cut inside a pair
	}
	good, basic, pairs, total := 0.0, 0, 0, 0
	blocks := map[uint16]bool{}
	for _, r := range utf16.Decode(units) {
		total++
		switch {
		case r == 0 || r == unicode.ReplacementChar || r == 0xFFFE || r == 0xFFFF:
			return 0
		case r < ' ' && !isTextControl(byte(r)) || r >= 0x7F && r < 0xA0:
			good -= 2
		case r < 0x7F:
			good, basic = good+1, basic+1
		case isCommonRune(r):
			good++
			blocks[uint16(r>>8)] = true
			if isPrintableASCII(byte(r)) && isPrintableASCII(byte(r>>8)) {
				pairs++
			}
		case unicode.IsGraphic(r):
			good += 0.3
		}
	}
	if total == 0 || basic == 0 {
		return 0
	}
	// Two ASCII letters look like a Han character; a text contains few such
	// pairs by chance.
	if pairs*2 > total-basic && pairs*2 > basic {
		return 0
	}
	// The other byte order turns ASCII into U+2000, U+0A00, U+6100 …: few real
	// texts have as many Unicode blocks as characters.
	if basic*4 < total && len(blocks)*3 > total*2 && total > 8 {
		good /= 2
	}
	return good / float64(total)
}

// isPrintableASCII reports whether c is a printable ASCII character, or a space.
func isPrintableASCII(c byte) bool { return c >= ' ' && c < 0x7F }

// isCommonRune reports whether r belongs to a widely used script or set of
// symbols.
func isCommonRune(r rune) bool {
	switch {
	case r < 0x250, r >= 0x370 && r < 0x700, r >= 0x900 && r < 0xE80:
		return unicode.IsGraphic(r)
	case r >= 0x2010 && r < 0x2040, r >= 0x2190 && r < 0x2200, r >= 0x2500 && r < 0x2700, r == 0x20AC:
		return true
	case r >= 0x3000 && r < 0x3100, r >= 0x4E00 && r < 0xA000, r >= 0xAC00 && r < 0xD7A4, r >= 0xFF00 && r < 0xFFF0:
		return unicode.IsGraphic(r)
	case r >= 0x1F300 && r < 0x1FB00:
		return true
	}
	return false
}
