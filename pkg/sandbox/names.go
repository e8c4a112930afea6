package sandbox

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EscapeName makes a file name safe to show: control characters, escape
// sequences, bidirectional and invisible characters, and bytes that are not
// UTF-8 become Go escapes (\n \x1b \u202e \xff). Any other name stays as it
// is; backslashes are doubled only in a name that has escapes, or that would
// read as if it had. So two names never look the same.
func EscapeName(s string) string {
	if plainName(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case hidden(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// plainName reports whether EscapeName leaves s alone.
func plainName(s string) bool {
	backslash := false
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				return false
			}
			backslash = backslash || c == '\\'
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || hidden(r) {
			return false
		}
		i += size
	}
	if !backslash || filepath.Separator == '\\' {
		return true
	}
	_, ambiguous := UnescapeName(s)
	return !ambiguous
}

// hidden reports whether a character is invisible, or changes how what
// follows is shown.
func hidden(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return true
	case r < 0x2000:
		return r == 0xad || r == 0x34f || r == 0x61c || r == 0x115f || r == 0x1160 || r == 0x17b4 || r == 0x17b5 || r >= 0x180b && r <= 0x180f
	case r == 0x2028, r == 0x2029, r == 0x3164, r == 0xffa0:
		return true
	case r >= 0xe0000 && r <= 0xe0fff: // tags, variation selectors
		return true
	case r >= 0xfe00 && r <= 0xfe0e: // variation selectors but the emoji one
		return true
	}
	// Format characters: zero-width, bidi, joiners, interlinear annotation.
	return unicode.Is(unicode.Cf, r)
}

// UnescapeName undoes EscapeName. ok is false when s holds no escape, or one
// that EscapeName never makes: above all no printable character, dot or
// slash can be written that way.
func UnescapeName(s string) (name string, ok bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, false
	}
	var b strings.Builder
	for len(s) > 0 {
		if s[0] != '\\' {
			i := strings.IndexByte(s, '\\')
			if i < 0 {
				i = len(s)
			}
			b.WriteString(s[:i])
			s = s[i:]
			continue
		}
		r, multibyte, rest, err := strconv.UnquoteChar(s, 0)
		octal := len(s) > 1 && s[1] >= '0' && s[1] <= '7'
		switch {
		case err != nil || octal || r == 0:
			return "", false
		case !multibyte && r >= utf8.RuneSelf: // \xff
			b.WriteByte(byte(r))
		case r == '\\' && strings.HasPrefix(s, `\\`), hidden(r):
			b.WriteRune(r)
		default:
			return "", false
		}
		s = rest
	}
	return b.String(), true
}
