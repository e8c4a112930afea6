package main

import (
	"strings"
	"unicode/utf8"
)

// clipLine returns text, one line, as a line to show: at most width characters
// of it around mark, a byte offset that must not be cut off.
func clipLine(text []byte, mark, width int) line {
	if len(text) <= width {
		return line{text: validUTF8(text)}
	}
	length := utf8.RuneCount(text)
	if length <= width {
		return line{text: validUTF8(text)}
	}
	from := mark
	for n := 0; n < width/2 && from > 0; n++ {
		_, size := utf8.DecodeLastRune(text[:from])
		from -= size
	}
	to := from
	n := 0
	for ; n < width && to < len(text); n++ {
		_, size := utf8.DecodeRune(text[to:])
		to += size
	}
	for ; n < width && from > 0; n++ {
		_, size := utf8.DecodeLastRune(text[:from])
		from -= size
	}
	shown := validUTF8(text[from:to])
	if from > 0 {
		shown = "…" + shown
	}
	if to < len(text) {
		shown += "…"
	}
	return line{text: shown, length: length, column: utf8.RuneCount(text[:mark]) + 1}
}

// validUTF8 returns text with invalid bytes replaced by U+FFFD.
func validUTF8(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }
