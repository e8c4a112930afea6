package match

import (
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/tools/edit/pace"
)

// folded returns what a character of typeset text stands for in plain text,
// and whether it is one. Only punctuation and blanks: a letter is never taken
// for another.
func folded(r rune) (string, bool) {
	switch {
	case r >= 0x2018 && r <= 0x201B, r == 0x2032, r == 0x2035, r == 0x02BC:
		return "'", true
	case r >= 0x201C && r <= 0x201F, r == 0x2033, r == 0x2036:
		return `"`, true
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return "-", true
	case r == 0x2026:
		return "...", true
	case r == 0xA0, r >= 0x2000 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
		return " ", true
	}
	return "", false
}

// fold returns text with its typeset punctuation made plain: text itself if
// it has none, else in buf, which is written from its beginning.
func fold(text, buf []byte) (plain, grown []byte) { return foldAt(nil, text, buf) }

// stretch is how much of a text is worked on between two looks at the pace.
const stretch = 64 << 10

// foldAt is fold for a text that may be long.
func foldAt(pace *pace.Pace, text, buf []byte) (plain, grown []byte) {
	if ascii(text) {
		return text, buf
	}
	buf = buf[:0]
	for i := 0; i < len(text) && !pace.Over(stretch); {
		for end := min(i+stretch, len(text)); i < end; {
			if text[i] < utf8.RuneSelf {
				buf = append(buf, text[i])
				i++
				continue
			}
			r, size := utf8.DecodeRune(text[i:])
			if s, ok := folded(r); ok {
				buf = append(buf, s...)
			} else {
				buf = append(buf, text[i:i+size]...)
			}
			i += size
		}
	}
	return buf, buf
}

func ascii(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// unfolder finds the places of a text that fold moved, asked for in ascending
// order.
type unfolder struct {
	text     []byte
	at, have int // a place, and where fold moved it to
	pace     *pace.Pace
}

// find returns where in the text the place is that fold moved to at; false if
// that is inside what one character became.
func (u *unfolder) find(at int) (int, bool) {
	for from := u.at; u.have < at && u.at < len(u.text) && !u.pace.Over(u.at-from); {
		from = u.at
		for end := min(u.at+stretch, len(u.text)); u.have < at && u.at < end; {
			if u.text[u.at] < utf8.RuneSelf {
				u.have, u.at = u.have+1, u.at+1
				continue
			}
			r, size := utf8.DecodeRune(u.text[u.at:])
			if s, ok := folded(r); ok {
				u.have += len(s)
			} else {
				u.have += size
			}
			u.at += size
		}
	}
	return u.at, u.have == at
}

// blanks is the white space that a line can end in.
const blanks = " \t\f\v\r"

func trimRight(line []byte) []byte {
	for len(line) > 0 && strings.IndexByte(blanks, line[len(line)-1]) >= 0 {
		line = line[:len(line)-1]
	}
	return line
}

// indentSize returns how many blanks a line begins with.
func indentSize[T string | []byte](line T) int {
	n := 0
	for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	return n
}
