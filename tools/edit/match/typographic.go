package match

import (
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// plainPunctuation returns the ASCII text for a typographic character; ok is
// false for all other characters. Only punctuation and blanks are replaced,
// never a letter.
func plainPunctuation(r rune) (plain string, ok bool) {
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

// foldPunctuation returns text with plain punctuation. It returns text itself
// if nothing needs to be replaced; otherwise plain is in buf, which is
// overwritten. grown is the buffer for the next call.
func foldPunctuation(text, buf []byte) (plain, grown []byte) { return foldLong(nil, text, buf) }

// checkInterval is the amount of text processed between two checks of the
// context, in bytes.
const checkInterval = 64 << 10

// foldLong returns the same as foldPunctuation, and asks checker every
// checkInterval bytes. If checker stops, plain is incomplete.
func foldLong(checker *cancelcheck.Checker, text, buf []byte) (plain, grown []byte) {
	if textfile.IsASCII(text) {
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

// unfolder converts offsets in text with plain punctuation to offsets in the
// original text.
type unfolder struct {
	text []byte // the original
	// The offset reached in the original, and the offset in the plain text
	// that corresponds to it.
	originalAt, foldedAt int
	checker              *cancelcheck.Checker
}

// originalOffset returns the offset in the original text for at, an offset in
// the plain text. ok is false if at is inside the replacement of a character,
// or if checker stops. The offsets of consecutive calls must ascend.
func (u *unfolder) originalOffset(at int) (offset int, ok bool) {
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
