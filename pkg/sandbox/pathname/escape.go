package pathname

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes a file name safe to show: control characters, escape
// sequences, bidirectional and invisible characters, and bytes that are not
// UTF-8 become Go escapes (\n \x1b \u202e \xff). All other names stay
// unchanged. Backslashes are doubled only in a name that has escapes, or that
// would read as if it had, so that two names never look the same.
func Escape(s string) string {
	if isPlain(s) {
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
		case IsHidden(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// isPlain reports whether Escape returns s unchanged.
func isPlain(s string) bool {
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
		if r == utf8.RuneError && size == 1 || IsHidden(r) {
			return false
		}
		i += size
	}
	if !backslash || filepath.Separator == '\\' {
		return true
	}
	_, ambiguous := Unescape(s)
	return !ambiguous
}

// IsHidden reports whether a character is invisible, or changes how the
// characters after it are shown: Escape escapes it.
func IsHidden(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return true
	case r < 0x2000:
		return r == 0xad || r == 0x34f || r == 0x61c || r == 0x115f || r == 0x1160 || r == 0x17b4 || r == 0x17b5 || r >= 0x180b && r <= 0x180f
	case r == 0x2028, r == 0x2029, r == 0x3164, r == 0xffa0:
		return true
	case r >= 0xe0000 && r <= 0xe0fff: // tags, variation selectors
		return true
	case r >= 0xfe00 && r <= 0xfe0e: // variation selectors except the emoji one
		return true
	}
	// Format characters: zero-width, bidi, joiners, interlinear annotation.
	return unicode.Is(unicode.Cf, r)
}

// Unescape undoes Escape. ok is false if s has no escape, or has one that
// Escape never makes: no printable character, dot or slash can be written as an
// escape. name is then not usable.
func Unescape(s string) (name string, ok bool) {
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
		case r == '\\' && strings.HasPrefix(s, `\\`), IsHidden(r):
			b.WriteRune(r)
		default:
			return "", false
		}
		s = rest
	}
	return b.String(), true
}
