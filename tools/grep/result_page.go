package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

// detail sets the amount of text shown for each match.
type detail struct {
	before, after int  // lines of context
	width         int  // characters of a line
	numbers       bool // only line numbers
	partial       bool // of one file: stop at the last match that fits
}

// line is one line as shown.
type line struct {
	number  int
	text    string
	context bool
	length  int // characters of the whole line, if text is only a part
	column  int // of the match, in characters, if text is a part around it
}

func (l line) at(number int, context bool) line {
	l.number, l.context = number, context
	if context {
		l.column = 0
	}
	return l
}

// clip returns at most width characters of text around mark, a byte offset.
func clip(text []byte, mark, width int) line {
	if len(text) <= width {
		return line{text: valid(text)}
	}
	length := utf8.RuneCount(text)
	if length <= width {
		return line{text: valid(text)}
	}
	from := mark
	for n := 0; n < width/2 && from > 0; n++ {
		_, size := utf8.DecodeLastRune(text[:from])
		from -= size
	}
	to := from
	n := 0
	for ; n < width && to < len(text); n++ {
		_, size := utf8.DecodeRune(text[to:])
		to += size
	}
	for ; n < width && from > 0; n++ {
		_, size := utf8.DecodeLastRune(text[:from])
		from -= size
	}
	shown := valid(text[from:to])
	if from > 0 {
		shown = "…" + shown
	}
	if to < len(text) {
		shown += "…"
	}
	return line{text: shown, length: length, column: utf8.RuneCount(text[:mark]) + 1}
}

func valid(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }

// page builds the text of a result within a size limit.
type page struct {
	detail
	numbered bool // show line numbers
	limit    int  // bytes
	message  int  // maximum bytes when encoded as JSON
	encoded  int  // bytes so far when encoded as JSON
	full     bool // something did not fit
	text     strings.Builder
	rows     []row
	path     string
	last     int // number of the last line shown of the file; 0: none
	listed   []int

	cut   bool // a partial page has ended before the remaining matches
	whole mark // position after the last complete match
}

// mark is a position between two matches.
type mark struct {
	matches   int // before it
	text, row int // bytes and rows before it
}

// newPage returns a page of at most limit bytes that also fits a message as
// JSON, in which quotes and newlines take twice the space: mcpkit would cut a
// larger one after its counts were computed. A limit above any message is used
// unchanged.
func newPage(limit int) *page {
	const rest = 16 << 10 // the header, notes and the rest of the message
	return &page{limit: limit, message: max(limit, mcpkit.MaxMessage) - rest}
}

// put adds text if it fits as a whole, and otherwise marks the page full.
func (p *page) put(text string) {
	p.encoded += encodedLen(text)
	if p.full = p.full || p.text.Len()+len(text) > p.limit || p.encoded > p.message; !p.full {
		p.text.WriteString(text)
	}
}

// mark records that so many matches are complete.
func (p *page) mark(matches int) {
	if !p.full {
		p.whole = mark{matches, p.text.Len(), len(p.rows)}
	}
}

// cutBack ends a full partial page after its last complete match, if it has
// one, and leaves room for a note.
func (p *page) cutBack() {
	const noteRoom = 256
	if !p.full || !p.partial || p.whole.matches == 0 {
		return
	}
	text := p.text.String()[:p.whole.text]
	p.text.Reset()
	p.text.WriteString(text)
	p.rows = p.rows[:p.whole.row]
	p.full, p.cut = false, true
	p.limit, p.encoded = p.limit+noteRoom, encodedLen(text)
}

// encodedLen returns an upper bound of the length of text as a JSON string.
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

// begin starts the part of a file.
func (p *page) begin(path string) {
	p.path, p.last, p.listed = path, 0, p.listed[:0]
	p.put(path + "\n")
}

// add adds a line.
func (p *page) add(l line) {
	last := p.last
	p.last = l.number
	if p.numbers {
		if !l.context && l.number != last {
			p.listed = append(p.listed, l.number)
			p.full = p.full || p.text.Len()+3*len(p.listed) > p.limit
		}
		return
	}
	if last > 0 && l.number > last+1 && p.before+p.after > 0 {
		p.put("  --\n")
	}
	p.put(p.prefix(l) + l.text + cutMark(l) + "\n")
	if !p.full {
		r := row{Path: p.path, Line: l.number, Text: l.text, Context: l.context}
		if l.length > 0 {
			r.Column = l.column
		}
		p.rows = append(p.rows, r)
	}
}

func (p *page) prefix(l line) string {
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

// cutMark describes the whole line if l was cut; otherwise it returns "".
func cutMark(l line) string {
	switch {
	case l.length == 0:
		return ""
	case l.column == 0:
		return fmt.Sprintf("  [%d characters]", l.length)
	}
	return fmt.Sprintf("  [column %d of %d]", l.column, l.length)
}

// more adds a note that a match continues for some lines, beginning with the
// given number.
func (p *page) more(lines, number int) {
	p.last = number + lines - 1
	if p.numbers {
		p.listed = append(p.listed, number)
		return
	}
	p.note("%s more of this match, to line %d", textfmt.Count(lines, "line"), p.last)
}

// note adds a note to the file's part.
func (p *page) note(format string, args ...any) {
	p.put("  … " + fmt.Sprintf(format, args...) + "\n")
}

// end finishes the part of a file.
func (p *page) end() {
	if !p.numbers || len(p.listed) == 0 {
		return
	}
	numbers := make([]string, len(p.listed))
	for i, n := range p.listed {
		numbers[i] = strconv.Itoa(n)
		p.rows = append(p.rows, row{Path: p.path, Line: n})
	}
	p.put("  " + textfmt.Count(len(numbers), "line")[len(strconv.Itoa(len(numbers)))+1:] + " " + strings.Join(slices.Compact(numbers), ", ") + "\n")
}
