package tokens

import (
	"unicode"
	"unicode/utf8"
)

// pieceCost returns the average number of tokens of a piece, in hundredths. The figures
// are for o200k_base, measured on the documentation and programs of this repository,
// Go's net/http, and dozens of packages' READMEs.
func pieceCost(piece string, k pieceKind) int {
	switch k {
	case number, space:
		return 100
	case symbol:
		return symbolCost(piece)
	}
	letters, ascii := len(piece), true
	for i := range len(piece) {
		if piece[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	first := piece[0]
	leads := ascii && (first|0x20 < 'a' || first|0x20 > 'z') // another character precedes the letters
	if leads {
		letters--
	}
	switch {
	case !ascii:
		return foreignCost(piece)
	case first == ' ':
		return costOfLength(letters, []int{100, 100, 100, 101, 101, 103, 104, 106, 111, 116, 123, 125, 133, 135, 150, 160}, 17)
	case leads:
		return costOfLength(letters, []int{100, 103, 112, 123, 126, 137, 130, 149, 176, 193, 220, 235, 276, 310}, 25)
	}
	return costOfLength(letters, []int{100, 100, 100, 107, 103, 109, 113, 113, 137, 143, 147, 156, 190, 220}, 25)
}

// costOfLength returns the cost of a piece of n characters from the table; beyond the
// table each per character, at least the table's last value.
func costOfLength(n int, table []int, each int) int {
	if n < len(table) {
		return table[n]
	}
	return max(table[len(table)-1], each*n)
}

// symbolCost returns the estimated cost of a run of symbols, in hundredths of a token.
func symbolCost(piece string) int {
	n := utf8.RuneCountInString(piece)
	if n < len(piece) {
		return max(110, 60*n)
	}
	if n > 12 {
		return 400 + 15*(n-12) // one character repeated
	}
	return costOfLength(n, []int{100, 100, 100, 103, 124, 150}, 33)
}

// foreignCost returns the cost of a word with letters other than ASCII: a cost for
// each letter, by the script of the first such letter.
func foreignCost(piece string) int {
	each := 47
	for _, r := range piece {
		if r < utf8.RuneSelf {
			continue
		}
		for _, script := range []struct {
			table *unicode.RangeTable
			each  int
		}{
			{unicode.Latin, 38}, {unicode.Han, 70}, {unicode.Cyrillic, 30}, {unicode.Hiragana, 55}, {unicode.Katakana, 74}, {unicode.Hangul, 49},
			{unicode.Arabic, 28}, {unicode.Greek, 36}, {unicode.Hebrew, 42}, {unicode.Thai, 39}, {unicode.Devanagari, 29},
		} {
			if unicode.Is(script.table, r) {
				each = script.each
				break
			}
		}
		break
	}
	return max(100, each*utf8.RuneCountInString(piece))
}
