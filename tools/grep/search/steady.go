package search

// To compare a long literal in each place where its rarest bytes stand takes,
// in texts that are full of them, the length of one times that of the other. It
// is then found in a time that does not depend on the literal, by the method of
// Knuth, Morris and Pratt.

// shortNeedle is the length up to which a literal is always compared.
const shortNeedle = 16

// tooOften reports whether so many places that a literal was compared in, of
// as many bytes, were in vain that to go on so would take too long.
func (n *needle) tooOften(failed, passed int) bool {
	return n.border != nil && failed > shortNeedle*(1+passed/len(n.text))
}

// borders returns, for each beginning of text, the length of the longest
// shorter one that it ends with.
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

// findSteadily is find that looks at each byte once.
func (n *needle) findSteadily(text []byte, from, to int) int {
	if from >= to {
		return -1
	}
	k := int32(0)
	for i, c := range text[from : to+len(n.text)-1] {
		if n.fold {
			c = lowerByte(c)
		}
		for k > 0 && c != n.text[k] {
			k = n.border[k-1]
		}
		if c == n.text[k] {
			if k++; int(k) == len(n.text) {
				return from + i + 1 - len(n.text)
			}
		}
	}
	return -1
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 32
	}
	return c
}
