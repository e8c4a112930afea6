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

// The longest runs that Blanks leaves unchanged.
const (
	maxLines  = 3  // blank lines
	maxSpaces = 24 // spaces and tabs within a line
)

// Text escapes the hidden characters of s, except line breaks and tabs.
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

// Line is Text that also escapes line breaks and tabs.
func Line(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Text(s))
}

func isPlainASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// IsHidden reports whether r is invisible or misleading: controls, formats (zero
// width, bidi, tags), spaces other than U+0020, fillers, private use.
func IsHidden(r rune) bool {
	switch {
	case r == utf8.RuneError:
		return false
	case r == 0x2800 || r == 0x1d159: // blank, although they are symbols
		return true
	}
	return !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r)
}

// WriteEscaped writes r as an escape sequence of Go and JSON: \n, \u200b.
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

// CollapseBlanks replaces each run of more than 3 blank lines, and each run of more
// than 24 spaces and tabs within a line, by its count: "… 480 blank lines …".
func CollapseBlanks(s string) string {
	var b strings.Builder
	blank := 0
	end := func() {
		if blank > maxLines {
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
