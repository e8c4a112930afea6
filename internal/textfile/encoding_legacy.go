package textfile

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// guessLegacy returns the likeliest of Shift-JIS, GBK, GB 18030 and the Western
// single-byte encodings, by how plausible the non-ASCII bytes are in each.
// sample must contain such bytes and may end inside a character. It returns ""
// if no encoding fits.
func guessLegacy(sample []byte) Encoding {
	western, single := scoreWestern(sample)
	best, score := western, single
	// For equal scores, prefer the simpler encoding.
	if s, ok := scoreDoubleByte(sample, shiftJISDecoder{}); ok && s > score {
		best, score = ShiftJIS, s
	}
	four := false
	if s, ok := scoreDoubleByte(sample, gbDecoder{sawFourByte: &four}); ok && s > score {
		best, score = GBK, s
		if four {
			best = GB18030
		}
	}
	if score < 0.2 {
		return ""
	}
	return best
}

// A doubleByteDecoder reads characters of an encoding and rates how common they
// are.
type doubleByteDecoder interface {
	// next returns the length of the character at the start of b, and its
	// weight from 0 (never seen in real text) to 1. A length of 0 means not
	// valid; -1 means that b ends inside the character.
	next(b []byte) (length int, weight float64)
}

// scoreDoubleByte returns the mean weight of the characters of b that are not
// ASCII. ok is false if the bytes are not valid. One invalid byte in 200
// characters is accepted, as in a cut or damaged text.
func scoreDoubleByte(b []byte, enc doubleByteDecoder) (score float64, ok bool) {
	var sum float64
	count, faults := 0, 0
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		n, weight := enc.next(b[i:])
		if n < 0 {
			break
		}
		if n == 0 {
			faults++
			i++
			continue
		}
		// "don\x92t", "na\xefve": a word of ASCII letters with one other byte
		// in it is Western.
		if n == 2 && isASCIILetter(b[i+1]) && i > 0 && isASCIILetter(b[i-1]) {
			weight *= 0.4
		}
		sum += weight
		count++
		i += n
	}
	if count == 0 || faults*200 > count {
		return 0, false
	}
	return sum / float64(count), true
}

// isASCIILetter reports whether c is an ASCII letter.
func isASCIILetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// shiftJISDecoder reads Shift-JIS.
type shiftJISDecoder struct{}

// next implements doubleByteDecoder.
func (shiftJISDecoder) next(b []byte) (int, float64) {
	lead := b[0]
	if lead >= 0xA1 && lead <= 0xDF {
		return 1, 0.45 // half-width katakana: valid, but out of fashion
	}
	if lead < 0x81 || lead == 0xA0 || lead > 0xFC {
		return 0, 0
	}
	if len(b) < 2 {
		return -1, 0
	}
	trail := b[1]
	if trail < 0x40 || trail == 0x7F || trail > 0xFC || !isAssigned(japanese.ShiftJIS.NewDecoder().Bytes, b[:2]) {
		return 0, 0
	}
	switch {
	case lead == 0x82, lead == 0x83: // kana, full-width letters
		return 2, 1
	case lead == 0x81: // punctuation
		return 2, 0.95
	case lead >= 0x88 && lead <= 0x97, lead == 0x98 && trail <= 0x72: // first level
		return 2, 0.95
	case lead <= 0x84, lead == 0x87: // Greek, Cyrillic, symbols of vendors
		return 2, 0.4
	case lead <= 0x9F, lead <= 0xEA && lead >= 0xE0: // second level
		return 2, 0.5
	}
	return 2, 0.2
}

// gbDecoder reads GBK and GB 18030. It sets *sawFourByte if it reads a
// character of four bytes, which only GB 18030 has.
type gbDecoder struct{ sawFourByte *bool }

// next implements doubleByteDecoder.
func (c gbDecoder) next(b []byte) (int, float64) {
	lead := b[0]
	if lead < 0x81 || lead == 0xFF {
		if lead == 0x80 {
			return 1, 0.1 // the euro sign of code page 936
		}
		return 0, 0
	}
	if len(b) < 2 {
		return -1, 0
	}
	trail := b[1]
	if trail >= '0' && trail <= '9' {
		return c.nextFourByte(b)
	}
	if trail < 0x40 || trail == 0x7F || trail == 0xFF || !isAssigned(simplifiedchinese.GBK.NewDecoder().Bytes, b[:2]) {
		return 0, 0
	}
	switch {
	case trail < 0xA1: // characters added to GB 2312 by GBK
		return 2, 0.25
	case lead == 0xA1, lead == 0xA3: // punctuation, full-width letters
		return 2, 0.95
	case lead >= 0xB0 && lead <= 0xD7: // first level
		return 2, 1
	case lead >= 0xD8 && lead <= 0xF7: // second level
		return 2, 0.45
	case lead == 0xA4, lead == 0xA5: // kana
		return 2, 0.7
	case lead > 0xA1 && lead < 0xAA:
		return 2, 0.5
	}
	return 2, 0.2
}

// nextFourByte returns, as next does, the length and weight of the four-byte
// character of GB 18030 at the start of b.
func (c gbDecoder) nextFourByte(b []byte) (int, float64) {
	if len(b) < 4 {
		return -1, 0
	}
	if b[2] < 0x81 || b[2] == 0xFF || b[3] < '0' || b[3] > '9' || !isAssigned(simplifiedchinese.GB18030.NewDecoder().Bytes, b[:4]) {
		return 0, 0
	}
	*c.sawFourByte = true
	return 4, 0.4
}

// isAssigned reports whether b decodes to a character that is assigned and not
// for private use.
func isAssigned(decode func([]byte) ([]byte, error), b []byte) bool {
	text, err := decode(b)
	if err != nil {
		return false
	}
	r, _ := utf8.DecodeRune(text)
	return r != utf8.RuneError && (r < 0xE000 || r > 0xF8FF)
}

// scoreWestern returns the mean plausibility, from 0 to 1, of the bytes above
// ASCII as letters or symbols of Windows-1252, judged by their neighbours. The
// encoding is Windows-1252 if b needs it, and Latin-1 otherwise.
func scoreWestern(b []byte) (Encoding, float64) {
	e := Latin1
	var sum float64
	count := 0
	for i, c := range b {
		if c < utf8.RuneSelf {
			continue
		}
		if c < 0xA0 {
			e = Windows1252
		}
		run := 1
		for j := i - 1; j >= 0 && b[j] >= utf8.RuneSelf; j-- {
			run++
		}
		for j := i + 1; j < len(b) && b[j] >= utf8.RuneSelf; j++ {
			run++
		}
		var before, after byte = ' ', ' '
		if i > 0 {
			before = b[i-1]
		}
		if i+1 < len(b) {
			after = b[i+1]
		}
		sum += westernWeight(c, run, before, after)
		count++
	}
	if count == 0 {
		return e, 0
	}
	return e, sum / float64(count)
}

// westernWeight returns the plausibility of a byte above ASCII in Western text.
// run is the number of such bytes in a row, before and after are its
// neighbours.
func westernWeight(c byte, run int, before, after byte) float64 {
	near := isASCIILetter(before) || isASCIILetter(after)
	switch {
	case c >= 0xC0 && c != 0xD7 && c != 0xF7:
		switch {
		case run == 1 && near:
			return 1
		case run == 1:
			return 0.85 // "à" between blanks
		case run == 2 && near:
			return 0.8
		case run <= 3:
			return 0.35
		}
		return 0.25
	case c >= 0xA0:
		if run == 1 {
			return 0.8 // a symbol next to ASCII text
		}
		if run == 2 && near {
			return 0.6 // "«é"
		}
		return 0.25
	case c >= 0x91 && c <= 0x97, c == 0x85, c == 0x80, c == 0x99: // quotes, dashes, ellipsis, euro, trade mark
		if run == 1 {
			return 0.97
		}
		if run == 2 {
			return 0.6
		}
		return 0.25
	case c == 0x8A, c == 0x8C, c == 0x8E, c == 0x9A, c == 0x9C, c == 0x9E, c == 0x9F: // letters
		if run == 1 && near {
			return 0.9
		}
		return 0.25
	case c == 0x81, c == 0x8D, c == 0x8F, c == 0x90, c == 0x9D:
		return 0 // not assigned
	}
	return 0.25
}
