package jsonrpc

import (
	"slices"
	"unicode/utf8"
)

// AppendString appends s as a JSON string. Unlike encoding/json by default, it
// does not escape < > &. Bytes that are not UTF-8 become \ufffd.
func AppendString(dst []byte, s string) []byte {
	dst = append(slices.Grow(dst, len(s)+len(s)/16+2), '"')
	plain := 0 // s[plain:i] needs no escape
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if i++; c < ' ' || c == '"' || c == '\\' {
				dst = appendEscape(append(dst, s[plain:i-1]...), c)
				plain = i
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if escape := runeEscape(r, size); escape != "" {
			dst = append(append(dst, s[plain:i-size]...), escape...)
			plain = i
		}
	}
	return append(append(dst, s[plain:]...), '"')
}

// appendEscape appends the escape of an ASCII character that a JSON string
// cannot contain.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\t':
		return append(dst, `\t`...)
	case '\r':
		return append(dst, `\r`...)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// runeEscape returns the escape of a non-ASCII character of size bytes, or ""
// if it needs none. Bytes that are not UTF-8, and the two line ends that
// JavaScript strings cannot contain, need one.
func runeEscape(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return `\ufffd`
	case r == '\u2028':
		return `\u2028`
	case r == '\u2029':
		return `\u2029`
	}
	return ""
}
