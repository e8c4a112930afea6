package markdown

import (
	"strings"
)

// A kind is the type of a line.
type kind int

const (
	text kind = iota
	heading
	rule   // horizontal line
	fenced // opening line of a code block
	row    // row of a table
)

// A block is the type of a line, and how the quotes and list items that contain it are
// shown.
type block struct {
	kind   kind
	length int    // number of runes before the content
	first  string // shown before the line
	hang   string // shown before its continuation lines
	level  int    // level of a heading
	fence  fence  // set for the kind fenced; fence.quotes for all
}

// quoteMark precedes each line of a quote.
const quoteMark = "│ "

// style returns the style of the block's text: headings are bold, those of level 1 also
// underlined.
func (b block) style() style {
	switch {
	case b.kind == heading && b.level == 1:
		return bold | underlined
	case b.kind == heading:
		return bold
	}
	return 0
}

// parseBlock returns the block of a line from its beginning. known is false if more
// text is needed; with whole, the line is complete, and the block is always known.
func parseBlock(line []rune, whole bool) (b block, known bool) {
	column := 0 // number of columns within the innermost quote
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
		marker, length, known := parseContainer(line[at:], whole)
		if !known {
			return b, false
		}
		if length == 0 {
			return b.withLeafKind(line[at:], whole, column)
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

// parseContainer returns the shown form of the marker of a quote or list item at the
// beginning of line, and the number of its runes; "" and 0 without a marker. known is
// false if more text could change the result; with whole, no more text of the line
// follows.
func parseContainer(line []rune, whole bool) (marker string, length int, known bool) {
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
		if n, all := countMarks(line, r); all && r != '+' {
			if !whole {
				return "", 0, false
			}
			if n >= 3 {
				return "", 0, true // a horizontal line
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

// withLeafKind returns b with the type of the line inside its containers. column is the
// number of columns before it. The result is false if more text is needed.
func (b block) withLeafKind(line []rune, whole bool, column int) (block, bool) {
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
		n, all := countMarks(line, r)
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

// countMarks counts mark in a line. all is true if all other characters are white
// space.
func countMarks(line []rune, mark rune) (n int, all bool) {
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
