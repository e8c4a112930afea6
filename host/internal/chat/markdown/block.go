package markdown

import (
	"strings"
)

// A kind says what a line is.
type kind int

const (
	text kind = iota
	heading
	rule   // across the page
	fenced // opens a code block
	row    // of a table
)

// A block is the kind of a line and the quotes and list items that contain it.
type block struct {
	kind   kind
	length int    // runes of the line before what it says
	first  string // before the line as it is shown
	hang   string // before what does not fit on it
	level  int    // of a heading
	fence  fence
}

// quoteMark precedes each line of a quote.
const quoteMark = "│ "

func (b block) style() style {
	switch {
	case b.kind == heading && b.level == 1:
		return bold | underlined
	case b.kind == heading:
		return bold
	}
	return 0
}

// blockOf says what a line is by its beginning, and whether that is known. With
// whole the beginning is all of it, and everything is known.
func blockOf(line []rune, whole bool) (b block, known bool) {
	column := 0 // within the innermost quote
	for range maxNest {
		at := b.length
		for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
			n := 1
			if line[at] == '\t' {
				n = 4
			}
			b.first += strings.Repeat(" ", n)
			b.hang += strings.Repeat(" ", n)
			column += n
			at++
		}
		b.length = at
		if at == len(line) {
			return b, whole
		}
		marker, length, known := containerOf(line[at:], whole)
		if !known {
			return b, false
		}
		if length == 0 {
			return b.leaf(line[at:], whole, column)
		}
		b.length += length
		b.first += marker
		if marker == quoteMark {
			column = 0
			b.fence.quotes++
			b.hang += marker
			continue
		}
		column += length
		b.hang += strings.Repeat(" ", len([]rune(marker)))
	}
	return b, true
}

// containerOf returns the shown marker of a quote or list item and its length in the
// line, 0 if none exists.
func containerOf(line []rune, whole bool) (marker string, length int, known bool) {
	after := func(at int, shown string) (string, int, bool) {
		switch {
		case at == len(line):
			return shown, at, whole
		case line[at] == ' ' || line[at] == '\t':
			return shown, at + 1, true
		}
		return "", 0, true
	}
	switch r := line[0]; {
	case r == '>':
		if len(line) == 1 {
			return quoteMark, 1, whole
		}
		if line[1] == ' ' {
			return quoteMark, 2, true
		}
		return quoteMark, 1, true
	case r == '-' || r == '*' || r == '+':
		if n, all := marks(line, r); all && r != '+' {
			if !whole {
				return "", 0, false
			}
			if n >= 3 {
				return "", 0, true // a rule
			}
		}
		return after(1, "• ")
	case r >= '0' && r <= '9':
		n := 1
		for n < len(line) && n < 9 && line[n] >= '0' && line[n] <= '9' {
			n++
		}
		if n == len(line) {
			return "", 0, whole
		}
		if line[n] == '.' || line[n] == ')' {
			return after(n+1, string(line[:n+1])+" ")
		}
	}
	return "", 0, true
}

// leaf says what a line is that is within what b has.
func (b block) leaf(line []rune, whole bool, column int) (block, bool) {
	r := line[0]
	n := 1
	for n < len(line) && line[n] == r {
		n++
	}
	switch r {
	case '#':
		switch {
		case n > 6:
		case n == len(line) && !whole:
			return b, false
		case n == len(line) || line[n] == ' ':
			b.kind, b.level = heading, n
			b.length += min(n+1, len(line))
		}
	case '`', '~':
		switch {
		case n == len(line) && !whole:
			return b, false
		case n < 3 || r == '`' && strings.ContainsRune(string(line[n:]), '`'):
		case !whole:
			return b, false
		default:
			b.kind = fenced
			b.fence.mark, b.fence.length, b.fence.indent = r, n, column
		}
	case '-', '*', '_':
		n, all := marks(line, r)
		switch {
		case all && !whole:
			return b, false
		case all && n >= 3:
			b.kind = rule
			b.length += len(line)
		}
	case '|':
		if b.first == "" {
			b.kind = row
		}
	}
	return b, true
}

// marks counts a character in a line, and reports whether all other characters are
// white space.
func marks(line []rune, mark rune) (n int, all bool) {
	for _, r := range line {
		switch r {
		case mark:
			n++
		case ' ', '\t':
		default:
			return n, false
		}
	}
	return n, true
}
