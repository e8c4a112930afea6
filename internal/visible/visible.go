// Package visible makes text safe to show to a person who makes a decision
// about it: it escapes invisible and misleading characters, and replaces long
// runs of blanks by their count, so that no part of the text can be moved out
// of sight.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The longest runs that CollapseBlanks leaves unchanged.
const (
	maxBlankLines = 3  // blank lines
	maxSpaces     = 24 // spaces and tabs within a line
)

// Text returns s with invisible and misleading characters escaped, except line
// breaks and tabs.
func Text(s string) string {
	if isPlainASCII(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || !IsHidden(r) {
			b.WriteRune(r)
			continue
		}
		WriteEscaped(&b, r)
	}
	return b.String()
}

// Line returns s with invisible and misleading characters, line breaks and tabs
// escaped.
func Line(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Text(s))
}

// isPlainASCII reports whether s consists of printable ASCII, line feeds and
// tabs.
func isPlainASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// IsHidden reports whether r is invisible or misleading: a control or format
// character (zero width, bidi, tag), a space other than U+0020, a filler, or
// for private use. It returns false for U+FFFD.
func IsHidden(r rune) bool {
	switch {
	case r == utf8.RuneError:
		return false
	case r == 0x2800 || r == 0x1d159: // blank, although they are symbols
		return true
	}
	return !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r)
}

// WriteEscaped writes r to b as an escape sequence of Go and JSON: \n, \u200b.
func WriteEscaped(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\r':
		b.WriteString(`\r`)
	case r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// CollapseBlanks returns s with long runs of blanks replaced by their count:
// more than 3 blank lines by "… 480 blank lines …", more than 24 spaces and
// tabs within a line by "… 80 spaces …".
func CollapseBlanks(s string) string {
	var b strings.Builder
	blank := 0
	end := func() {
		if blank > maxBlankLines {
			fmt.Fprintf(&b, "… %d blank lines …\n", blank)
		} else {
			b.WriteString(strings.Repeat("\n", blank))
		}
		blank = 0
	}
	for line := range strings.Lines(s) {
		if strings.HasSuffix(line, "\n") && strings.TrimSpace(line) == "" {
			blank++
			continue
		}
		end()
		writeCollapsed(&b, line)
	}
	end()
	return b.String()
}

// writeCollapsed writes a line to b with long runs of spaces and tabs replaced
// by their count.
func writeCollapsed(b *strings.Builder, line string) {
	for line != "" {
		n := len(line) - len(strings.TrimLeft(line, " \t"))
		if n > maxSpaces {
			fmt.Fprintf(b, "… %d spaces …", n)
		} else {
			b.WriteString(line[:n])
		}
		line = line[n:]
		next := strings.IndexAny(line, " \t")
		if next < 0 {
			next = len(line)
		}
		b.WriteString(line[:next])
		line = line[next:]
	}
}
