package policy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// excerpt returns the beginning of text for use in a message: in one line,
// printable, and cut after maxExcerpt bytes.
func excerpt(text string) string { return printable(text, maxExcerpt) }

// printable returns text in one line, with spaces for line breaks and tabs, other control
// and invisible characters escaped, and cut with "…" after about maxBytes bytes.
func printable(text string, maxBytes int) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
		if b.Len() > maxBytes {
			return b.String() + "…"
		}
	}
	return strings.TrimSpace(b.String())
}
