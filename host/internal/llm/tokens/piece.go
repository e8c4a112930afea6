package tokens

import (
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a piece of text.
type kind uint8

const (
	word   kind = iota // letters, perhaps after one other character
	number             // up to three digits
	sign               // what is neither, perhaps after a space
	space
)

// next returns how many bytes the first piece of a text has. No token crosses
// the border of one. It is this regular expression of o200k_base's, by hand,
// since package regexp looks at nothing ahead:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func next(text string) (int, kind) {
	first, size := utf8.DecodeRuneInString(text)
	class := classOf(first)
	if n := words(text, class, size); n > 0 {
		return n, word
	}
	switch {
	case class == digit:
		n := size
		for range 2 {
			r, size := utf8.DecodeRuneInString(text[n:])
			if n == len(text) || classOf(r) != digit {
				break
			}
			n += size
		}
		return n, number
	case class == other:
		return signs(text, 0), sign
	case first == ' ':
		if r, _ := utf8.DecodeRuneInString(text[1:]); len(text) > 1 && classOf(r) == other {
			return signs(text, 1), sign
		}
	}
	return spaces(text), space
}

// class is a class of characters in the splitting expression.
type class uint8

const (
	other class = iota
	upper       // that begin a word: Lu, Lt
	lower       // that do not: Ll
	both        // Lm, Lo, M
	digit
	blank
	newline // \r and \n
)

func classOf(r rune) class {
	switch {
	case r >= 'a' && r <= 'z':
		return lower
	case r >= 'A' && r <= 'Z':
		return upper
	case r >= '0' && r <= '9':
		return digit
	case r == '\n' || r == '\r':
		return newline
	case r == ' ' || r >= '\t' && r <= '\r':
		return blank
	case r < 0x80:
		return other
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper
	case unicode.In(r, unicode.Lm, unicode.Lo, unicode.M):
		return both
	case unicode.Is(unicode.N, r):
		return digit
	case unicode.IsSpace(r):
		return blank
	}
	return other
}

// words is the first two alternatives; 0: neither matches.
func words(text string, first class, size int) int {
	// The character before the letters may be a mark, which is one of them, too.
	mark := first == both && isMark(text)
	for _, lower := range []bool{true, false} {
		if first == other || first == blank || mark {
			if n := letters(text, size, lower); n > 0 {
				return n
			}
		}
		if n := letters(text, 0, lower); n > 0 {
			return n
		}
	}
	return 0
}

func isMark(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.Is(unicode.M, r)
}

// letters matches capitals and then small letters from a place on, at least
// one of the small (needsLower) or else of the capitals; 0: it does not match.
func letters(text string, from int, needsLower bool) int {
	at, last := from, 0 // last: the end of the last one that can be either
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		c := classOf(r)
		if c != upper && c != both {
			break
		}
		at += size
		if c == both {
			last = at
		}
	}
	if !needsLower && at == from {
		return 0
	}
	end := at
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if c := classOf(r); c != lower && c != both {
			break
		}
		end += size
	}
	if needsLower && end == at {
		if last == 0 {
			return 0
		}
		end = last // the capitals leave it to the small ones
	}
	return end + suffix(text[end:])
}

// suffix is the contraction that a text begins with.
func suffix(text string) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch text[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(text) > 2 && text[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(text) > 2 && text[2]|0x20 == 'l' {
			return 3
		}
	}
	if r, size := utf8.DecodeRuneInString(text[1:]); r == 'ſ' { // a long s is one, too
		return 1 + size
	}
	return 0
}

// signs returns the end of a run of characters other than letters, digits and spaces,
// marks among them, with the line ends after it.
func signs(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if c := classOf(r); c != other && (c != both || !unicode.Is(unicode.M, r)) {
			break
		}
		at += size
	}
	for at < len(text) && (text[at] == '\n' || text[at] == '\r' || text[at] == '/') {
		at++
	}
	return at
}

// spaces is the rest: up to the last line end of a run of spaces; or all but
// the last of them, which belongs to what follows; or all at the end.
func spaces(text string) int {
	at, before, line := 0, 0, 0
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		c := classOf(r)
		if c != blank && c != newline {
			break
		}
		before = at
		if at += size; c == newline {
			line = at
		}
	}
	switch {
	case line > 0:
		return line
	case at == len(text) || before == 0:
		return at
	}
	return before
}
