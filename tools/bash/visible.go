package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shown is output made safe to show: control characters, including escape
// sequences, and characters that reorder or hide text are escaped, so that they
// affect neither a terminal nor a reader. The two joiners, which some scripts
// and emoji need, are kept and counted.
type shown struct {
	text                     string
	control, unseen, joiners int
}

func safe(text string) shown {
	if !strings.ContainsFunc(text, risky) {
		return shown{text: text}
	}
	var s shown
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\r' && strings.HasPrefix(text[i+1:], "\n"):
		case r == '\r':
			b.WriteString(`\r`)
		case r == 0x200c || r == 0x200d:
			b.WriteRune(r)
			s.joiners++
		case r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, r)
			s.control++
		case risky(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
			s.unseen++
		case risky(r):
			fmt.Fprintf(&b, `\u%04x`, r)
			s.unseen++
		default:
			b.WriteRune(r)
		}
		i += size
	}
	s.text = b.String()
	return s
}

// risky reports whether a character is invisible or could mislead a reader.
func risky(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return true
	case r < 0xad:
		return false
	}
	return unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029
}

// words describes the escaped characters, for the last line.
func (s shown) words() string {
	var parts []string
	for _, one := range []struct {
		n    int
		what string
	}{{s.control, "control"}, {s.unseen, "hidden"}, {s.joiners, "joining"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " characters"
}
