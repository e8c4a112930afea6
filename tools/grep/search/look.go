package search

// look is a condition on the characters before and after a position, such as ^ or
// \b.
type look uint8

// The looks. asciiLooks, added to a look for words, makes it one for ASCII
// only.
const (
	lineStart look = iota
	lineEnd
	textStart
	textEnd
	// There are six looks for words, and the same six for ASCII only.
	wordBoundary
	notWordBoundary
	wordStart
	wordEnd
	wordStartHalf
	wordEndHalf
	asciiLooks = 6 // number of looks for words
)

// attr is a set of attributes of a symbol that looks test.
type attr uint8

// The attributes of symbols.
const (
	attrEdge attr = 1 << iota // no symbol: the beginning or end of the text
	attrLine                  // \n
	attrWord
	attrASCIIWord
	attrInvalid // a byte that belongs to no character

	attrSetCount = 1 << 5 // number of possible sets of attributes
)

// testedAttrs returns the attributes that l tests.
func testedAttrs(l look) attr {
	switch {
	case l == lineStart || l == lineEnd:
		return attrEdge | attrLine
	case l == textStart || l == textEnd:
		return attrEdge
	case l >= wordBoundary+asciiLooks:
		return attrASCIIWord
	case l == notWordBoundary || l == wordStartHalf || l == wordEndHalf:
		return attrWord | attrInvalid
	}
	return attrWord
}

// holds reports whether l holds between two symbols.
func (l look) holds(before, after attr) bool {
	word, valid := attrWord, true
	if l >= wordBoundary+asciiLooks {
		l, word = l-asciiLooks, attrASCIIWord
	} else {
		// The negative looks do not hold next to an invalid byte.
		switch l {
		case notWordBoundary:
			valid = (before|after)&attrInvalid == 0
		case wordStartHalf:
			valid = before&attrInvalid == 0
		case wordEndHalf:
			valid = after&attrInvalid == 0
		}
	}
	left, right := before&word != 0, after&word != 0
	switch l {
	case lineStart:
		return before&(attrEdge|attrLine) != 0
	case lineEnd:
		return after&(attrEdge|attrLine) != 0
	case textStart:
		return before&attrEdge != 0
	case textEnd:
		return after&attrEdge != 0
	case wordBoundary:
		return left != right
	case notWordBoundary:
		return left == right && valid
	case wordStart:
		return !left && right
	case wordEnd:
		return left && !right
	case wordStartHalf:
		return !left && valid
	}
	return !right && valid
}

// attrsOf returns the attributes of a character. word is the set of word
// characters.
func attrsOf(r rune, word charset) (a attr) {
	if r == '\n' {
		a |= attrLine
	}
	if word.has(r) {
		a |= attrWord
	}
	if asciiWordSet().has(r) {
		a |= attrASCIIWord
	}
	return a
}
