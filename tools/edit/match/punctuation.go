package match

import (
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// folded returns the plain text for a typographic character, and whether it is
// one. Only punctuation and blanks are folded, never a letter.
func plainPunctuation(r rune) (string, bool) {
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

// fold returns text with plain punctuation: text itself if it has no other,
// otherwise a copy in buf, which is overwritten.
func foldPunctuation(text, buf []byte) (plain, grown []byte) { return foldLong(nil, text, buf) }

// stretch is the amount of text processed between two checks of the context, in
// bytes.
const checkInterval = 64 << 10

// foldAt is fold for a text that may be long.
func foldLong(checker *cancelcheck.Checker, text, buf []byte) (plain, grown []byte) {
	if isASCII(text) {
		return text, buf
	}
	buf = buf[:0]
	for i := 0; i < len(text) && !checker.Stopped(checkInterval); {
		for end := min(i+checkInterval, len(text)); i < end; {
			if text[i] < utf8.RuneSelf {
				buf = append(buf, text[i])
				i++
				continue
			}
			r, size := utf8.DecodeRune(text[i:])
			if s, ok := plainPunctuation(r); ok {
				buf = append(buf, s...)
			} else {
				buf = append(buf, text[i:i+size]...)
			}
			i += size
		}
	}
	return buf, buf
}

func isASCII(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// unfolder maps positions of folded text back to the original, for ascending
// positions.
type unfolder struct {
	text                 []byte
	originalAt, foldedAt int // a position, and the one after folding
	checker              *cancelcheck.Checker
}

// find returns the original position for at, a position after folding; false if
// that is inside the replacement of one character.
func (u *unfolder) originalOffset(at int) (int, bool) {
	for from := u.originalAt; u.foldedAt < at && u.originalAt < len(u.text) && !u.checker.Stopped(u.originalAt-from); {
		from = u.originalAt
		for end := min(u.originalAt+checkInterval, len(u.text)); u.foldedAt < at && u.originalAt < end; {
			if u.text[u.originalAt] < utf8.RuneSelf {
				u.foldedAt, u.originalAt = u.foldedAt+1, u.originalAt+1
				continue
			}
			r, size := utf8.DecodeRune(u.text[u.originalAt:])
			if s, ok := plainPunctuation(r); ok {
				u.foldedAt += len(s)
			} else {
				u.foldedAt += size
			}
			u.originalAt += size
		}
	}
	return u.originalAt, u.foldedAt == at
}
