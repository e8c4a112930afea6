// Package ansic decodes quoted text of bash.
package ansic

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decode decodes the text between the quotes of $'…' as bash does. A
// decoded NUL ends it.
func Decode(text string) string {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		c := text[i]
		if at := strings.IndexByte("abeEfnrtv", c); at >= 0 {
			out = append(out, "\a\b\x1b\x1b\f\n\r\t\v"[at])
			continue
		}
		switch {
		case c == '\\' || c == '\'' || c == '"' || c == '?':
			out = append(out, c)
		case c == 'c' && i+1 < len(text):
			i++
			if text[i] == '\\' && i+1 < len(text) && text[i+1] == '\\' {
				i++
			}
			out = append(out, text[i]&0x1f)
		case c == 'x' || c == 'u' || c == 'U' || c >= '0' && c <= '7':
			var size int
			out, size = appendNumericEscape(out, text[i:])
			i += size - 1
		default:
			out = append(out, '\\', c)
		}
		if len(out) > 0 && out[len(out)-1] == 0 {
			return string(out[:len(out)-1])
		}
	}
	return string(out)
}

// appendNumericEscape appends the character of the octal, \x, \u or \U escape
// at the start of text, which is without its backslash and not empty. used is
// the number of bytes of text that the escape takes. An escape without digits,
// such as \xg, is kept: \x is appended, and used is 1.
func appendNumericEscape(out []byte, text string) (extended []byte, used int) {
	base, skip, most := 16, 1, 2
	switch text[0] {
	case 'u':
		most = 4
	case 'U':
		most = 8
	case 'x':
	default:
		base, skip, most = 8, 0, 3
	}
	end := skip
	for end < len(text) && end-skip < most && digitValue(text[end]) < base {
		end++
	}
	if end == skip {
		return append(out, '\\', text[0]), 1
	}
	n, _ := strconv.ParseUint(text[skip:end], base, 32)
	if most <= 3 {
		return append(out, byte(n)), end
	}
	return utf8.AppendRune(out, rune(n)), end
}

// digitValue returns the value of a hexadecimal digit, or 99 for any other
// byte.
func digitValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return 99
}
