// Package screen writes text to a terminal: it escapes text from others (Clean),
// measures it in columns (Width), and writes it above a status line (Screen).
//
// A terminal obeys control characters. Text of a model, a tool or a file is written
// only after Clean: it escapes escape sequences, control characters, and characters
// that hide or reorder others (see NeedsEscape).
package screen

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Clean escapes the characters of a text that can control a terminal or are invisible,
// except line ends and tabs.
func Clean(text string) string {
	if isVisibleASCII(text) {
		return text
	}
	var b strings.Builder
	before := rune(0)
	for _, r := range text {
		b.WriteString(EscapeRune(before, r))
		before = r
	}
	return b.String()
}

// EscapeJSON returns a JSON text with \u escapes for the characters that control a
// terminal or are invisible. They occur only in strings, where an escape has the same
// meaning.
func EscapeJSON(line []byte) []byte {
	steers := func(r rune) bool { return NeedsEscape(0, r) }
	if bytes.IndexFunc(line, steers) < 0 {
		return line
	}
	var b []byte
	for _, r := range string(line) {
		if !steers(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

// isVisibleASCII reports whether a text has only visible ASCII characters, as most
// texts do.
func isVisibleASCII(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// EscapeRune returns a rune as Clean shows it after the rune before, which is 0 at the
// beginning: itself, or \uXXXX.
func EscapeRune(before, r rune) string {
	if NeedsEscape(before, r) {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}

// NeedsEscape reports whether Clean escapes a rune after the rune before (0 at the
// beginning): a control character, a character that reverses the order of text (Trojan
// Source, CVE-2021-42574), or an invisible character, which can hide text from a reader
// or make two different names look alike: zero width spaces and joiners, fillers, tags and
// variation selectors. Line ends and tabs are not escaped.
//
// Three kinds of invisible characters belong to ordinary writing and are escaped only
// elsewhere (as UTS #39 and #55 advise, RFC 5892 demands of names, and editors that mark
// invisible characters do): joiners in scripts that use them, such as Persian and Hindi;
// joiners between emoji; and one variation selector after a character that has variants,
// such as emoji and Chinese characters. Only the rune before decides, so that text can be
// shown while it arrives.
func NeedsEscape(before, r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	case r < 0xa0:
		return false
	case r == zeroWidthJoiner && allowsEmojiJoiner(before):
		return false
	case r == zeroWidthJoiner || r == zeroWidthNonJoiner:
		return !allowsLetterJoiner(before)
	case unicode.Is(unicode.Variation_Selector, r):
		return !hasVariants(before)
	case r == 0x2028 || r == 0x2029 || r >= 0xe0000 && r <= 0xe0fff:
		return true
	case unicode.Is(unicode.Cf, r): // except signs that precede numbers
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	}
	return unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
	emojiSelector      = '\ufe0f'
)

// allowsLetterJoiner reports whether a character is a letter or mark of a script in which
// a joiner after it determines the shape of letters.
func allowsLetterJoiner(r rune) bool {
	if r >= 0x64b && r <= 0x655 || r == 0x670 { // Arabic vowels, which other scripts use, too
		return true
	}
	return (unicode.IsLetter(r) || unicode.IsMark(r)) && unicode.In(r,
		unicode.Arabic, unicode.Syriac, unicode.Mandaic, unicode.Nko, unicode.Mongolian, unicode.Adlam, unicode.Hanifi_Rohingya,
		unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
		unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan, unicode.Balinese, unicode.Javanese,
	)
}

// allowsEmojiJoiner reports whether a zero width joiner after a character joins it to the
// next emoji.
func allowsEmojiJoiner(r rune) bool {
	return r == emojiSelector || r >= 0x1f3fb && r <= 0x1f3ff || unicode.Is(unicode.So, r)
}

// hasVariants reports whether a character has variants that variation selectors
// choose.
func hasVariants(r rune) bool {
	switch {
	case r >= '0' && r <= '9', r == '#', r == '*', r == '\u2139': // keycaps, and the information sign
		return true
	case r < 0x80:
		return false
	}
	return unicode.IsSymbol(r) || unicode.IsPunct(r) || unicode.In(r, unicode.Han, unicode.Mongolian, unicode.Phags_Pa, unicode.Myanmar)
}

// OneLine returns a text on one line of at most columns columns, cleaned, with single
// spaces. If it was cut, it ends with an ellipsis.
func OneLine(text string, columns int) string {
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

// Width returns the number of terminal columns of a rune: 0, 1 or 2.
func Width(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), r >= 0x1160 && r <= 0x11ff: // also vowels of Hangul, which are joined with consonants
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Columns returns the number of terminal columns of a text on one line.
func Columns(text string) int {
	n := 0
	for _, r := range text {
		n += Width(r)
	}
	return n
}
