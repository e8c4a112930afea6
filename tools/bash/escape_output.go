package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// escapedText is output in which control characters, including escape
// sequences, and characters that reorder or hide text are escaped, so that they
// affect neither a terminal nor a reader. The two joiners, which some scripts
// and emoji need, are kept and counted.
type escapedText struct {
	text                     string
	control, hidden, joiners int // numbers of control characters, hidden characters and joiners
}

// quoteName puts a name from FS.Display in single quotes if it could be taken for
// other words of an answer, such as a name with a space.
func quoteName(name string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune(`_-./+@%=:~^#$\[]{}()&!?*`, r)
	}
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// escapeUnsafe returns text with its unsafe characters escaped.
func escapeUnsafe(text string) escapedText {
	if !strings.ContainsFunc(text, isUnsafe) {
		return escapedText{text: text}
	}
	var s escapedText
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
		case isUnsafe(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
			s.hidden++
		case isUnsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
			s.hidden++
		default:
			b.WriteRune(r)
		}
		i += size
	}
	s.text = b.String()
	return s
}

// isUnsafe reports whether a character is invisible or could mislead a reader.
func isUnsafe(r rune) bool {
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

// describe counts the characters that were escaped or kept, for the last line; "" if there are
// none.
func (s escapedText) describe() string {
	var parts []string
	for _, one := range []struct {
		n    int
		what string
		done string
	}{{s.control, "control", "escaped"}, {s.hidden, "hidden", "escaped"}, {s.joiners, "joining", "kept"}} {
		if one.n > 0 {
			parts = append(parts, textfmt.Count(one.n, one.what+" character")+" "+one.done)
		}
	}
	return strings.Join(parts, ", ")
}
