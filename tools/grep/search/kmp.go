package search

// In a text full of a long literal's rarest bytes, comparing the literal at
// each of them takes the product of both lengths. In that case, the method of
// Knuth, Morris and Pratt finds it in a time that does not depend on the
// literal.

// shortNeedle bounds the literals that are always compared directly, in bytes.
const shortNeedle = 16

// prefersKMP reports whether findKMP should be used, after a number of failed
// comparisons within the bytes passed.
func (n *needle) prefersKMP(failed, passed int) bool {
	return n.borders != nil && failed > shortNeedle*(1+passed/len(n.text))
}

// borders returns, for each prefix of text, the length of its longest border:
// the longest shorter prefix that is also its suffix.
func borders(text []byte) []int32 {
	border := make([]int32, len(text))
	for i, k := 1, int32(0); i < len(text); i++ {
		for k > 0 && text[i] != text[k] {
			k = border[k-1]
		}
		if text[i] == text[k] {
			k++
		}
		border[i] = k
	}
	return border
}

// findKMP returns the same as find, in linear time: it reads each byte once.
func (n *needle) findKMP(text []byte, from, to int) int {
	if from >= to {
		return -1
	}
	k := int32(0)
	for i, c := range text[from : to+len(n.text)-1] {
		if n.fold {
			c = lowerASCIIByte(c)
		}
		for k > 0 && c != n.text[k] {
			k = n.borders[k-1]
		}
		if c == n.text[k] {
			if k++; int(k) == len(n.text) {
				return from + i + 1 - len(n.text)
			}
		}
	}
	return -1
}

// lowerASCIIByte returns c in lower case if it is an ASCII letter, and
// otherwise c.
func lowerASCIIByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 32
	}
	return c
}
