package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/wording"
)

// detail is how much is shown of each match.
type detail struct {
	before, after int  // lines of context
	width         int  // characters of a line
	numbers       bool // only the numbers of lines
	partial       bool // of one file, as many matches as fit, the others left out
}

// line is one line as it is shown.
type line struct {
	number  int
	text    string
	context bool
	length  int // characters of the whole line, where text is only a part
	column  int // of the match, in characters, where text is a part around it
}

func (l line) at(number int, context bool) line {
	l.number, l.context = number, context
	if context {
		l.column = 0
	}
	return l
}

// clip makes a line of text, no more than width characters of it around
// mark, a byte offset.
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

// page is the text of a result that is being made, within a bound.
type page struct {
	detail
	numbered bool // lines are shown with their numbers
	limit    int  // bytes
	message  int  // bytes of it as JSON
	encoded  int  // so many there are
	full     bool // something did not fit
	text     strings.Builder
	rows     []row
	path     string
	last     int // number of the last line shown of the file; 0: none
	listed   []int

	cut   bool // a partial page has no room for the other matches
	whole mark // up to where matches are complete
}

// mark is a place between two matches.
type mark struct {
	matches   int // before it
	text, row int // bytes and rows before it
}

// newPage returns a page of at most limit bytes that also fits a message as
// JSON, in which quotes and newlines take twice their room: what does not is
// cut behind the counts. A limit beyond any message is taken as it is.
func newPage(limit int) *page {
	const rest = 16 << 10 // the header, notes and what is around the text
	return &page{limit: limit, message: max(limit, mcpkit.MaxMessage) - rest}
}

// put adds text if all of it fits.
func (p *page) put(text string) {
	p.encoded += encodedLen(text)
	if p.full = p.full || p.text.Len()+len(text) > p.limit || p.encoded > p.message; !p.full {
		p.text.WriteString(text)
	}
}

// mark notes that so many matches are complete.
func (p *page) mark(matches int) {
	if !p.full {
		p.whole = mark{matches, p.text.Len(), len(p.rows)}
	}
}

// cutBack ends a full page after the last complete match, if it may end there
// and has any, with room for a note.
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

// encodedLen is how long text is in a JSON string, at the most.
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

// begin begins a file.
func (p *page) begin(path string) {
	p.path, p.last, p.listed = path, 0, p.listed[:0]
	p.put(path + "\n")
}

// add shows a line.
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

// cutMark says what a line that is cut was.
func cutMark(l line) string {
	switch {
	case l.length == 0:
		return ""
	case l.column == 0:
		return fmt.Sprintf("  [%d characters]", l.length)
	}
	return fmt.Sprintf("  [column %d of %d]", l.column, l.length)
}

// more says that a match goes on for some lines, the first of which has the
// given number.
func (p *page) more(lines, number int) {
	p.last = number + lines - 1
	if p.numbers {
		p.listed = append(p.listed, number)
		return
	}
	p.note("%s more of this match, to line %d", wording.Count(lines, "line"), p.last)
}

// note adds a remark to the file.
func (p *page) note(format string, args ...any) {
	p.put("  … " + fmt.Sprintf(format, args...) + "\n")
}

// end ends a file.
func (p *page) end() {
	if !p.numbers || len(p.listed) == 0 {
		return
	}
	numbers := make([]string, len(p.listed))
	for i, n := range p.listed {
		numbers[i] = strconv.Itoa(n)
		p.rows = append(p.rows, row{Path: p.path, Line: n})
	}
	p.put("  " + wording.Count(len(numbers), "line")[len(strconv.Itoa(len(numbers)))+1:] + " " + strings.Join(slices.Compact(numbers), ", ") + "\n")
}
