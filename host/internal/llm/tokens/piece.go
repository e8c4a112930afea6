package tokens

import (
	"unicode"
	"unicode/utf8"
)

// pieceKind is the kind of a piece of text.
type pieceKind uint8

const (
	word   pieceKind = iota // letters, possibly after another character
	number                  // up to three digits
	symbol                  // other characters, possibly after a space
	space
)

// nextPiece returns how many bytes the first piece of a text has. No token crosses
// the border of one. It is this regular expression of o200k_base's, by hand,
// since package regexp looks at nothing ahead:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func nextPiece(text string) (int, pieceKind) {
	first, size := utf8.DecodeRuneInString(text)
	class := classOf(first)
	if n := matchWord(text, class, size); n > 0 {
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
		return matchSymbols(text, 0), symbol
	case first == ' ':
		if r, _ := utf8.DecodeRuneInString(text[1:]); len(text) > 1 && classOf(r) == other {
			return matchSymbols(text, 1), symbol
		}
	}
	return matchSpaces(text), space
}

// charClass is a class of characters in the splitting expression.
type charClass uint8

const (
	other charClass = iota
	upper           // Lu, Lt: can only be among the first letters of a word
	lower           // Ll: can only be among the last letters of a word
	both            // Lm, Lo, M
	digit
	blank
	newline // \r and \n
)

// classOf returns the class of a character.
func classOf(r rune) charClass {
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

// matchWord matches the first two alternatives of nextPiece's expression, the words, at the
// beginning of text, whose first character has the class first and size bytes. It returns
// the length of the match in bytes; 0: no match.
func matchWord(text string, first charClass, size int) int {
	// A mark before the letters also counts as a letter.
	mark := first == both && isMark(text)
	for _, lower := range []bool{true, false} {
		if first == other || first == blank || mark {
			if n := matchLetters(text, size, lower); n > 0 {
				return n
			}
		}
		if n := matchLetters(text, 0, lower); n > 0 {
			return n
		}
	}
	return 0
}

// isMark reports whether a text begins with a combining mark.
func isMark(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.Is(unicode.M, r)
}

// matchLetters matches upper-case letters and then lower-case letters from an index,
// at least one lower-case letter (needsLower) or otherwise at least one upper-case
// letter. It returns the end; 0: no match.
func matchLetters(text string, from int, needsLower bool) int {
	at, last := from, 0 // end of the last letter that can belong to either group
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
		end = last // that letter belongs to the second group
	}
	return end + matchContraction(text[end:])
}

// matchContraction returns the length of a contraction ('s, 't, 're and the like) at
// the beginning of a text.
func matchContraction(text string) int {
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
	if r, size := utf8.DecodeRuneInString(text[1:]); r == 'ſ' { // a long s counts as an s without regard to case
		return 1 + size
	}
	return 0
}

// matchSymbols returns the end of a run of characters other than letters, digits and
// spaces, from the index at on, with the line ends and slashes after it. Marks are such
// characters, too.
func matchSymbols(text string, at int) int {
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

// matchSpaces matches the last three alternatives: spaces up to the last line end, or
// all spaces except the last one, which belongs to the next piece, or all spaces at
// the end of the text.
func matchSpaces(text string) int {
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
