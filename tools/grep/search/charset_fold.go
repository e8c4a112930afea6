package search

import (
	"slices"
	"unicode"
)

// missingCaseRanges are characters with case that unicode.CaseRanges omits,
// because the other case is not their simple upper or lower case.
var missingCaseRanges = []rune{0x00DF, 0x0390, 0x03B0, 0x1FD3, 0x1FE3, 0xFB05, 0xFB06}

// simpleFold is unicode.SimpleFold with three pairs that fold since Unicode
// 15.1; Go's tables are of 15.0. The pairs are the two forms of ΐ and of ΰ, and
// the ligatures of long s and of s with t.
func simpleFold(r rune) rune {
	switch r {
	case 0x0390:
		return 0x1FD3
	case 0x1FD3:
		return 0x0390
	case 0x03B0:
		return 0x1FE3
	case 0x1FE3:
		return 0x03B0
	case 0xFB05:
		return 0xFB06
	case 0xFB06:
		return 0xFB05
	}
	return unicode.SimpleFold(r)
}

// foldCase returns c with the other cases of every member, by Unicode's simple
// folding.
func (c charset) foldCase() charset {
	out := slices.Clone(c)
	add := func(r rune) {
		for f := simpleFold(r); f != r; f = simpleFold(f) {
			out = append(out, runeRange{f, f})
		}
	}
	for _, s := range c {
		if s.hi-s.lo < 8 {
			for r := s.lo; r <= s.hi; r++ {
				add(r)
			}
			continue
		}
		for _, cased := range unicode.CaseRanges {
			for r := max(s.lo, rune(cased.Lo)); r <= min(s.hi, rune(cased.Hi)); r++ {
				add(r)
			}
		}
		for _, r := range missingCaseRanges {
			if s.lo <= r && r <= s.hi {
				add(r)
			}
		}
	}
	return out.normalize()
}

// foldASCII returns c with the other case of its ASCII letters.
func (c charset) foldASCII() charset {
	out := slices.Clone(c)
	for _, s := range c {
		for r := max(s.lo, 'A'); r <= min(s.hi, 'Z'); r++ {
			out = append(out, runeRange{r + 32, r + 32})
		}
		for r := max(s.lo, 'a'); r <= min(s.hi, 'z'); r++ {
			out = append(out, runeRange{r - 32, r - 32})
		}
	}
	return out.normalize()
}
