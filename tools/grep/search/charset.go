package search

import (
	"cmp"
	"slices"
	"unicode"
)

// A charset is the set of characters that a pattern matches at one position, as
// sorted ranges that neither overlap nor touch. It may also contain the raw
// bytes 0x80 to 0xFF, which only (?-u) uses: byte b is the number rawBase+b,
// above the last character.
type charset []runeRange

// runeRange is a range of characters, both ends included.
type runeRange struct{ lo, hi rune }

const (
	// maxRune is the last character.
	maxRune = unicode.MaxRune // the last character
	rawBase = maxRune + 1     // raw byte b is the number rawBase+b
	maxRaw  = rawBase + 0xFF  // the last raw byte
)

// singleRune returns the set of one character.
func singleRune(r rune) charset { return charset{{r, r}} }

// anyRune returns every character that UTF-8 can encode.
func anyRune() charset { return charset{{0, 0xD7FF}, {0xE000, maxRune}} }

// anyByte returns every byte, as raw bytes above 0x7F.
func anyByte() charset { return charset{{0, 0x7F}, {rawBase + 0x80, maxRaw}} }

// normalize sorts the ranges and merges those that overlap or touch. It reuses
// c's memory.
func (c charset) normalize() charset {
	slices.SortFunc(c, func(a, b runeRange) int { return cmp.Compare(a.lo, b.lo) })
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

// union returns the members of c or d.
func (c charset) union(d charset) charset {
	return append(slices.Clone(c), d...).normalize()
}

// intersect returns the members of both c and d.
func (c charset) intersect(d charset) charset {
	var out charset
	for i, j := 0, 0; i < len(c) && j < len(d); {
		lo, hi := max(c[i].lo, d[j].lo), min(c[i].hi, d[j].hi)
		if lo <= hi {
			out = append(out, runeRange{lo, hi})
		}
		if c[i].hi < d[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

// minus returns the members of c that are not in d.
func (c charset) minus(d charset) charset {
	var out charset
	for _, s := range c {
		lo := s.lo
		for _, t := range d {
			if t.hi < lo || t.lo > s.hi {
				continue
			}
			if t.lo > lo {
				out = append(out, runeRange{lo, t.lo - 1})
			}
			lo = t.hi + 1
		}
		if lo <= s.hi {
			out = append(out, runeRange{lo, s.hi})
		}
	}
	return out
}

// has reports whether the character r is a member.
func (c charset) has(r rune) bool {
	_, found := slices.BinarySearchFunc(c, r, func(s runeRange, r rune) int {
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

// sizeUpTo returns the number of members, or limit if there are more.
func (c charset) sizeUpTo(limit int) int {
	n := 0
	for _, s := range c {
		n += int(s.hi-s.lo) + 1
		if n >= limit {
			return limit
		}
	}
	return n
}

// fromTable returns the characters of a table of the package unicode.
func fromTable(t *unicode.RangeTable) charset {
	var out charset
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, runeRange{lo, hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			out = append(out, runeRange{r, r})
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return out.normalize()
}

// fromTables returns the characters of several tables.
func fromTables(tables ...*unicode.RangeTable) charset {
	var out charset
	for _, t := range tables {
		out = append(out, fromTable(t)...)
	}
	return out.normalize()
}
