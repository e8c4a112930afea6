package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

// detail sets the amount of text shown for each match.
type detail struct {
	before, after int  // lines of context
	width         int  // largest number of characters of a line
	numbersOnly   bool // show only line numbers
	partial       bool // of one file: end the page after the last match that fits, instead of leaving it full
}

// line is one line as shown.
type line struct {
	number  int
	text    string
	context bool // it does not match
	length  int  // characters of the whole line, if text is only a part; otherwise 0
	column  int  // of the match, in characters from 1, if text is a part around it; otherwise 0
}

// withNumber returns l with its number. context means that the line does not
// match; such a line has no column.
func (l line) withNumber(number int, context bool) line {
	l.number, l.context = number, context
	if context {
		l.column = 0
	}
	return l
}

// resultPage builds the text of a result within a size limit.
type resultPage struct {
	detail
	numbered     bool // show line numbers
	maxBytes     int  // bytes
	maxEncoded   int  // maximum bytes of the text as JSON
	encodedBytes int  // bytes of the text so far as JSON, at most
	full         bool // something did not fit
	text         strings.Builder
	rows         []row
	path         string // of the current file
	lastLine     int    // number of the last line shown of the file; 0: none
	lineNumbers  []int  // with numbersOnly: of the file's matches

	cut      bool     // a partial page has ended before the remaining matches
	complete pageMark // position after the last complete match
}

// pageMark is a position between two matches.
type pageMark struct {
	matches   int // matches before it
	text, row int // bytes and rows before it
}

// newResultPage returns a page of at most maxBytes that also fits into a
// message as JSON, in which quotes and newlines take twice the space: mcpkit
// would cut a larger result after its counts were computed. A limit above any
// message is used unchanged.
func newResultPage(maxBytes int) *resultPage {
	const rest = 16 << 10 // the header, notes and the rest of the message
	return &resultPage{maxBytes: maxBytes, maxEncoded: max(maxBytes, mcpkit.MaxMessage) - rest}
}

// put adds text if it fits as a whole, and otherwise marks the page full. A
// full page stays unchanged.
func (p *resultPage) put(text string) {
	p.encodedBytes += encodedLen(text)
	if p.full = p.full || p.text.Len()+len(text) > p.maxBytes || p.encodedBytes > p.maxEncoded; !p.full {
		p.text.WriteString(text)
	}
}

// markComplete records that so many matches are complete.
func (p *resultPage) markComplete(matches int) {
	if !p.full {
		p.complete = pageMark{matches, p.text.Len(), len(p.rows)}
	}
}

// cutToComplete shortens a full partial page to its last complete match, if it
// has one, and makes room for a note. Then the page is cut instead of full.
func (p *resultPage) cutToComplete() {
	const noteRoom = 256
	if !p.full || !p.partial || p.complete.matches == 0 {
		return
	}
	text := p.text.String()[:p.complete.text]
	p.text.Reset()
	p.text.WriteString(text)
	p.rows = p.rows[:p.complete.row]
	p.full, p.cut = false, true
	p.maxBytes, p.encodedBytes = p.maxBytes+noteRoom, encodedLen(text)
}

// encodedLen returns an upper bound of the length of text as a JSON string, in
// bytes.
func encodedLen(text string) int {
	n := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\n', c == '\t', c == '\r', c == '"', c == '\\':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		case c == 0xE2: // may begin U+2028 or U+2029
			n += len(`\u2028`) - len("\u2028")
		}
	}
	return n
}

// beginFile starts the part of the file shown as path.
func (p *resultPage) beginFile(path string) {
	p.path, p.lastLine, p.lineNumbers = path, 0, p.lineNumbers[:0]
	p.put(path + "\n")
}

// addLine adds a line, after a separator if lines are missing before it.
func (p *resultPage) addLine(l line) {
	last := p.lastLine
	p.lastLine = l.number
	if p.numbersOnly {
		if !l.context && l.number != last {
			p.lineNumbers = append(p.lineNumbers, l.number)
			p.full = p.full || p.text.Len()+3*len(p.lineNumbers) > p.maxBytes
		}
		return
	}
	if last > 0 && l.number > last+1 && p.before+p.after > 0 {
		p.put("  --\n")
	}
	p.put(p.linePrefix(l) + l.text + cutNote(l) + "\n")
	if !p.full {
		r := row{Path: p.path, Line: l.number, Text: l.text, Context: l.context}
		if l.length > 0 {
			r.Column = l.column
		}
		p.rows = append(p.rows, r)
	}
}

// linePrefix returns the text before a line: its number, and whether it is
// context.
func (p *resultPage) linePrefix(l line) string {
	switch {
	case !p.numbered && l.context:
		return "- "
	case !p.numbered:
		return "  "
	case l.context:
		return "  " + strconv.Itoa(l.number) + "- "
	}
	return "  " + strconv.Itoa(l.number) + ": "
}

// cutNote describes the whole line if l was cut; otherwise it returns "".
func cutNote(l line) string {
	switch {
	case l.length == 0:
		return ""
	case l.column == 0:
		return fmt.Sprintf("  [%d characters]", l.length)
	}
	return fmt.Sprintf("  [column %d of %d]", l.column, l.length)
}

// addMatchRest adds a note that a match continues for so many lines, from the
// line number first. With numbersOnly it adds first instead of a note.
func (p *resultPage) addMatchRest(lines, first int) {
	p.lastLine = first + lines - 1
	if p.numbersOnly {
		p.lineNumbers = append(p.lineNumbers, first)
		return
	}
	p.addNote("%s more of this match, to line %d", textfmt.Count(lines, "line"), p.lastLine)
}

// addNote adds a note to the file's part.
func (p *resultPage) addNote(format string, args ...any) {
	p.put("  … " + fmt.Sprintf(format, args...) + "\n")
}

// flushLineNumbers finishes the part of a file: with numbersOnly it writes the line numbers
// of its matches, and adds a row for each match. Otherwise it does nothing.
func (p *resultPage) flushLineNumbers() {
	if !p.numbersOnly || len(p.lineNumbers) == 0 {
		return
	}
	numbers := make([]string, len(p.lineNumbers))
	for i, n := range p.lineNumbers {
		numbers[i] = strconv.Itoa(n)
		p.rows = append(p.rows, row{Path: p.path, Line: n})
	}
	numbers = slices.Compact(numbers)
	p.put("  " + textfmt.Count(len(numbers), "line")[len(strconv.Itoa(len(numbers)))+1:] + " " + strings.Join(numbers, ", ") + "\n")
}
