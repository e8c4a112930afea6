// Package screen is what may be written to a terminal, and how it looks there:
// text that others wrote is made harmless (Clean), measured in columns (Width),
// and written above a line that says what is under way (Screen).
//
// A terminal obeys what it is sent. Nothing that a model, a tool or a file says
// is written to one without Clean: no escape sequence, no control character and
// no character that turns the order of others around gets through; each is
// shown escaped instead.
package screen

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Clean shows the characters of a text that could steer a terminal escaped.
// Ends of lines and tabs stay.
func Clean(text string) string {
	if strings.IndexFunc(text, Steers) < 0 {
		return strings.ToValidUTF8(text, "\ufffd")
	}
	var b strings.Builder
	for _, r := range text {
		b.WriteString(Shown(r))
	}
	return b.String()
}

// Shown is one rune as Clean shows it.
func Shown(r rune) string {
	if Steers(r) {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}

// Steers reports whether a terminal does more with a rune than show it: control
// characters, those that turn the order of text around, and those that hide text.
// Ends of lines and tabs do not count.
func Steers(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	}
	return r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0xe0000 && r <= 0xe0fff
}

// Line is a text on one line of at most columns columns, made harmless, its
// white space single; what is cut shows by its last character.
func Line(text string, columns int) string {
	text = Clean(strings.Join(strings.Fields(text), " "))
	if columns < 1 {
		return ""
	}
	at, fits := 0, 0 // of the text, and of what leaves room for the mark
	for i, r := range text {
		w := Width(r)
		if at+w > columns {
			return text[:fits] + "…"
		}
		if at += w; at < columns {
			fits = i + len(string(r))
		}
	}
	return text
}

// Width returns how many columns a rune takes.
func Width(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), r >= 0x1160 && r <= 0x11ff: // and vowels of Hangul, which join
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Columns returns how many columns a text of one line takes.
func Columns(text string) int {
	n := 0
	for _, r := range text {
		n += Width(r)
	}
	return n
}
