package jsonrpc

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// skipValue returns the position after the value at pos. It returns an error if the value
// is invalid or nested too deeply. depth counts the values around it.
func skipValue(b []byte, pos, depth int) (after int, err error) {
	if pos >= len(b) {
		return 0, syntaxError(pos, "unexpected end")
	}
	if depth > maxDepth {
		return 0, syntaxError(pos, fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	switch c := b[pos]; {
	case c == '"':
		end, _, err := skipString(b, pos)
		return end, err
	case c == '{':
		return eachMember(b, pos, depth, nil)
	case c == '[':
		return eachItem(b, pos, depth, nil)
	case c == 't':
		return skipLiteral(b, pos, "true")
	case c == 'f':
		return skipLiteral(b, pos, "false")
	case c == 'n':
		return skipLiteral(b, pos, "null")
	case c == '-' || c >= '0' && c <= '9':
		return skipNumber(b, pos)
	}
	return 0, syntaxError(pos, "expected a value")
}

// eachItem scans the array at pos and returns the position after it. visit, unless nil,
// gets the start of each item and must return its end. depth counts the values around the
// array.
func eachItem(b []byte, pos, depth int, visit func(start int) (end int, err error)) (after int, err error) {
	pos = skipSpace(b, pos+1)
	if pos < len(b) && b[pos] == ']' {
		return pos + 1, nil
	}
	for {
		var end int
		if visit == nil {
			end, err = skipValue(b, pos, depth+1)
		} else {
			end, err = visit(pos)
		}
		if err != nil {
			return 0, err
		}
		pos = skipSpace(b, end)
		switch {
		case pos < len(b) && b[pos] == ',':
			pos = skipSpace(b, pos+1)
		case pos < len(b) && b[pos] == ']':
			return pos + 1, nil
		default:
			return 0, syntaxError(pos, "expected , or ]")
		}
	}
}

// skipLiteral returns the position after word, which must be at pos.
func skipLiteral(b []byte, pos int, word string) (after int, err error) {
	if len(b)-pos < len(word) || string(b[pos:pos+len(word)]) != word {
		return 0, syntaxError(pos, "expected a value")
	}
	return pos + len(word), nil
}

// skipNumber returns the position after the number at pos. It returns an error for a
// number that JSON does not allow, such as 01.
func skipNumber(b []byte, pos int) (after int, err error) {
	digits := func() bool {
		from := pos
		for pos < len(b) && b[pos] >= '0' && b[pos] <= '9' {
			pos++
		}
		return pos > from
	}
	if b[pos] == '-' {
		pos++
	}
	if pos < len(b) && b[pos] == '0' {
		pos++
	} else if !digits() {
		return 0, syntaxError(pos, "expected a digit")
	}
	if pos < len(b) && b[pos] == '.' {
		pos++
		if !digits() {
			return 0, syntaxError(pos, "expected a digit")
		}
	}
	if pos < len(b) && b[pos]|0x20 == 'e' {
		pos++
		if pos < len(b) && (b[pos] == '+' || b[pos] == '-') {
			pos++
		}
		if !digits() {
			return 0, syntaxError(pos, "expected a digit")
		}
	}
	return pos, nil
}

// skipString returns the position after the string at pos and whether the
// string has escapes. It scans eight bytes at a time, since text is most of a
// message.
func skipString(b []byte, pos int) (end int, escaped bool, err error) {
	pos++
	for {
		for len(b)-pos >= 8 {
			if special := specialBytes(binary.LittleEndian.Uint64(b[pos:])); special != 0 {
				pos += bits.TrailingZeros64(special) / 8
				break
			}
			pos += 8
		}
		if pos >= len(b) {
			return 0, false, syntaxError(pos, "unterminated string")
		}
		switch c := b[pos]; {
		case c == '"':
			return pos + 1, escaped, nil
		case c == '\\':
			escaped = true
			if pos, err = skipEscape(b, pos); err != nil {
				return 0, false, err
			}
		case c < 0x20:
			return 0, false, syntaxError(pos, "control character in a string")
		default:
			pos++
		}
	}
}

// specialBytes returns a word whose lowest set bit is in the first of eight
// bytes that is a quote, a backslash or below 0x20; 0 if no byte is. It uses
// the zero-in-word test of Hacker's Delight, section 6-1, which may be wrong
// after the first such byte.
func specialBytes(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	control := (w - ones*0x20) &^ w
	return (control | (quote-ones)&^quote | (slash-ones)&^slash) & high
}

// skipEscape returns the position after the escape sequence whose backslash is
// at pos.
func skipEscape(b []byte, pos int) (after int, err error) {
	if pos+1 >= len(b) {
		return 0, syntaxError(pos, "unterminated string")
	}
	switch b[pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return pos + 2, nil
	case 'u':
		if len(b)-pos < 6 {
			return 0, syntaxError(pos, "unterminated escape")
		}
		for _, c := range b[pos+2 : pos+6] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0, syntaxError(pos, "malformed \\u escape")
			}
		}
		return pos + 6, nil
	}
	return 0, syntaxError(pos, "unknown escape")
}
