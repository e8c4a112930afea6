package dirtree

import "strings"

// compareNatural compares names as people sort them: runs of digits by their
// value, ASCII letters regardless of case. Names that are equal by these rules
// are compared by their bytes, so that the order is total.
func compareNatural(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		if isDigit(x) && isDigit(y) {
			endX, endY := digitsEnd(a, i), digitsEnd(b, j)
			if c := compareNumbers(a[i:endX], b[j:endY]); c != 0 {
				return c
			}
			i, j = endX, endY
			continue
		}
		if x, y = lowerASCII(x), lowerASCII(y); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		i++
		j++
	}
	switch {
	case i < len(a):
		return 1
	case j < len(b):
		return -1
	}
	return strings.Compare(a, b)
}

// isDigit reports whether c is an ASCII digit.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// lowerASCII returns the lower case of an ASCII letter, and any other byte unchanged.
func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// digitsEnd returns the index after the run of digits that begins at from.
func digitsEnd(s string, from int) int {
	for from < len(s) && isDigit(s[from]) {
		from++
	}
	return from
}

// compareNumbers compares decimal numbers of any length, without regard to
// leading zeros.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		if len(a) < len(b) {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}
