package search

import (
	"cmp"
	"slices"
	"unicode"
)

// A charset is the set of characters that a pattern matches at one position, as
// sorted ranges that neither overlap nor touch. Above the last character are
// the raw bytes 0x80 to 0xFF, which only (?-u) uses: byte b is rawBase+b.
type charset []span

type span struct{ lo, hi rune }

const (
	maxRune = unicode.MaxRune
	rawBase = maxRune + 1
	maxRaw  = rawBase + 0xFF
)

func single(r rune) charset { return charset{{r, r}} }

// anyRune returns every character that UTF-8 can encode; anyByte every byte.
func anyRune() charset { return charset{{0, 0xD7FF}, {0xE000, maxRune}} }
func anyByte() charset { return charset{{0, 0x7F}, {rawBase + 0x80, maxRaw}} }

func (c charset) normal() charset {
	slices.SortFunc(c, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	out := c[:0]
	for _, s := range c {
		if n := len(out); n > 0 && s.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, s.hi)
		} else {
			out = append(out, s)
		}
	}
	return out
}

func (c charset) union(d charset) charset {
	return append(slices.Clone(c), d...).normal()
}

func (c charset) intersect(d charset) charset {
	var out charset
	for i, j := 0, 0; i < len(c) && j < len(d); {
		lo, hi := max(c[i].lo, d[j].lo), min(c[i].hi, d[j].hi)
		if lo <= hi {
			out = append(out, span{lo, hi})
		}
		if c[i].hi < d[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

func (c charset) minus(d charset) charset {
	var out charset
	for _, s := range c {
		lo := s.lo
		for _, t := range d {
			if t.hi < lo || t.lo > s.hi {
				continue
			}
			if t.lo > lo {
				out = append(out, span{lo, t.lo - 1})
			}
			lo = t.hi + 1
		}
		if lo <= s.hi {
			out = append(out, span{lo, s.hi})
		}
	}
	return out
}

func (c charset) has(r rune) bool {
	_, found := slices.BinarySearchFunc(c, r, func(s span, r rune) int {
		switch {
		case s.hi < r:
			return -1
		case s.lo > r:
			return 1
		}
		return 0
	})
	return found
}

// size returns the number of members, counted up to limit.
func (c charset) size(limit int) int {
	n := 0
	for _, s := range c {
		n += int(s.hi-s.lo) + 1
		if n >= limit {
			return limit
		}
	}
	return n
}

// unfoldedByTable are characters with case that unicode.CaseRanges omits,
// because the other case is not their simple upper or lower case.
var unfoldedByTable = []rune{0x00DF, 0x0390, 0x03B0, 0x1FD3, 0x1FE3, 0xFB05, 0xFB06}

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

// fold returns c with the other cases of every member, by Unicode's simple
// folding.
func (c charset) fold() charset {
	out := slices.Clone(c)
	add := func(r rune) {
		for f := simpleFold(r); f != r; f = simpleFold(f) {
			out = append(out, span{f, f})
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
		for _, r := range unfoldedByTable {
			if s.lo <= r && r <= s.hi {
				add(r)
			}
		}
	}
	return out.normal()
}

// foldASCII returns c with the other case of its ASCII letters.
func (c charset) foldASCII() charset {
	out := slices.Clone(c)
	for _, s := range c {
		for r := max(s.lo, 'A'); r <= min(s.hi, 'Z'); r++ {
			out = append(out, span{r + 32, r + 32})
		}
		for r := max(s.lo, 'a'); r <= min(s.hi, 'z'); r++ {
			out = append(out, span{r - 32, r - 32})
		}
	}
	return out.normal()
}

func fromTable(t *unicode.RangeTable) charset {
	var out charset
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, span{lo, hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			out = append(out, span{r, r})
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return out.normal()
}

func fromTables(tables ...*unicode.RangeTable) charset {
	var out charset
	for _, t := range tables {
		out = append(out, fromTable(t)...)
	}
	return out.normal()
}
