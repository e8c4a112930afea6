// Package markdown shows what a model writes on a terminal while it comes:
// headings, emphasis, code, lists, quotes, tables and links, within a number of
// columns.
//
// It never rewrites its output. So the output does not depend on how the text is cut
// into pieces, and it scrolls like other output. It writes a word or a table after its
// end, and emphasis and links after their closing mark. It holds back a bounded part of
// the text, and writes more than that unformatted.
//
// It is a light reading of CommonMark and of GitHub's tables, for what models
// write:
//
//   - The end of a line is one, also in a paragraph, and ends emphasis.
//   - Code blocks keep their fences and are neither indented nor wrapped, so that
//     what is copied from the terminal is the code.
//   - A link is its text and its address, which so cannot be another than it says.
//   - HTML, entities and references are text.
//
// Characters that could steer the terminal are shown escaped; see screen.Clean.
package markdown

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Options are options of the rendering.
type Options struct {
	Width  func() int // columns of the terminal, called for each line
	Styled bool       // with escape sequences for bold, colours and so on
}

// The limits of text that is held back.
const (
	maxHeadRunes  = 200     // runes of the beginning of a line
	maxHeldRunes  = 512     // runes of emphasis, a code span or a link
	maxTableRunes = 1 << 16 // runes of a table
	minWidth      = 20      // columns
	maxNest       = 6       // quotes and items on a line; emphasis within emphasis
)

// A Writer renders a text. Only one goroutine may use it at a time.
type Writer struct {
	o      Options
	page   page
	inline inline

	partial     []byte // incomplete UTF-8 sequence
	head        []rune // beginning of a line whose block is not known yet, or a whole table row
	inRow       bool   // the line is a row of a table
	lineStarted bool   // a part of the line was written
	cr          bool   // the last rune was a carriage return
	fence       fence
	table       []string // lines of the table that is held back
	size        int      // size of table, in runes
}

// A fence is the opening line of a code block. The zero value means none.
type fence struct {
	mark   rune
	length int
	indent int // indentation of the opening line, removed from the lines of the block
	quotes int // number of quotes around the opening line
}

// New returns a writer to out.
func New(out io.Writer, o Options) *Writer {
	w := &Writer{o: o}
	w.page = page{out: out, styled: o.Styled}
	w.inline = inline{put: w.page.add, plain: !o.Styled}
	return w
}

// Write adds text. It returns the error of the underlying writer.
func (w *Writer) Write(text []byte) (int, error) {
	n := len(text)
	if len(w.partial) > 0 {
		text = append(w.partial, text...)
		w.partial = nil
	}
	for len(text) > 0 {
		if !utf8.FullRune(text) {
			w.partial = append([]byte(nil), text...)
			break
		}
		r, size := utf8.DecodeRune(text)
		w.writeRune(r)
		text = text[size:]
	}
	return n, w.page.flush()
}

// Close ends the text: it writes the text that was held back, and ends the line. Then
// another text can begin. It returns the first error of the output.
func (w *Writer) Close() error {
	for range w.partial {
		w.writeRune(utf8.RuneError)
	}
	w.partial = nil
	if w.cr {
		w.cr = false
		w.addToLine('\r')
	}
	if w.lineStarted || len(w.head) > 0 {
		w.endLine()
	}
	w.endTable()
	w.fence = fence{}
	return w.page.flush()
}

// writeRune adds a rune of the text; the carriage return of a line end is dropped.
func (w *Writer) writeRune(r rune) {
	if w.cr {
		w.cr = false
		if r != '\n' {
			w.addToLine('\r')
		}
	}
	switch r {
	case '\r':
		w.cr = true
	case '\n':
		w.endLine()
	default:
		w.addToLine(r)
	}
}

// addToLine adds a rune that is no line end to the line.
func (w *Writer) addToLine(r rune) {
	switch {
	case w.inRow:
		if w.head = append(w.head, r); w.size+len(w.head) >= maxTableRunes {
			w.inRow = false
			w.endTable()
			w.beginBlock(block{kind: text})
		}
	case !w.lineStarted:
		w.head = append(w.head, r)
		w.beginLine(false)
	case w.fence.mark != 0:
		w.page.writeUnwrapped(r, code)
	default:
		w.inline.addRune(r)
	}
}

// endLine ends the line: a row is added to the table, the rest of other text is
// written.
func (w *Writer) endLine() {
	if !w.lineStarted && !w.inRow {
		w.beginLine(true)
	}
	switch {
	case w.inRow:
		w.table = append(w.table, string(w.head))
		w.size += len(w.head)
	case w.lineStarted:
		w.inline.endLine()
		w.page.endLine()
	}
	w.lineStarted, w.inRow, w.head = false, false, w.head[:0]
}

// beginLine determines the block of the line from w.head, and writes its known
// beginning. It does nothing if more text is needed; with whole, the line is complete.
func (w *Writer) beginLine(whole bool) {
	if w.fence.mark != 0 {
		w.beginCodeLine(whole)
		return
	}
	b, known := parseBlock(w.head, whole)
	switch {
	case !known && !whole && len(w.head) < maxHeadRunes:
		return
	case !known:
		b = block{kind: text}
	case b.kind == row:
		w.inRow = true
		return
	}
	w.endTable()
	w.beginBlock(b)
}

// beginBlock writes the beginning of a line whose block is known.
func (w *Writer) beginBlock(b block) {
	rest := w.head[b.length:]
	w.lineStarted = true
	w.page.beginLine(w.textWidth(), b.first, b.hang)
	w.inline.beginLine(b.style())
	switch b.kind {
	case rule:
		for range w.page.freeColumns() {
			w.page.writeUnwrapped('─', dim)
		}
		return
	case fenced:
		w.fence = b.fence
		for _, r := range strings.TrimSpace(string(rest)) {
			w.page.writeUnwrapped(r, dim)
		}
		return
	case heading:
		if !w.o.Styled {
			for _, r := range strings.Repeat("#", b.level) + " " {
				w.page.add(cell{r, 0})
			}
		}
	}
	for _, r := range rest {
		w.inline.addRune(r)
	}
}

// textWidth returns the number of columns to use: one less than the terminal has, and
// at least minWidth.
func (w *Writer) textWidth() int { return max(w.o.Width()-1, minWidth) }

// beginCodeLine decides whether the current line of a code block is the fence that
// closes the block, and shows the beginning of the line. complete means that the whole
// line is held. As long as it needs more of the line, it does nothing, and w.within
// stays false.
func (w *Writer) beginCodeLine(complete bool) {
	f := w.fence
	rest := trimQuotes(w.head, f.quotes)
	trimmed := strings.TrimLeftFunc(string(rest), unicode.IsSpace)
	run := len(trimmed) - len(strings.TrimLeft(trimmed, string(f.mark)))
	closing := strings.TrimRightFunc(trimmed[run:], unicode.IsSpace) == ""
	if closing && !complete && len(w.head) < maxHeadRunes {
		return
	}
	if !closing && !complete && len(w.head) < f.indent+2*f.quotes { // the part to remove is not complete
		return
	}
	w.lineStarted = true
	margin := strings.Repeat(quoteMark, f.quotes) + strings.Repeat(" ", f.indent)
	w.page.beginLine(w.textWidth(), margin, margin)
	if closing && run >= f.length {
		w.fence = fence{}
		for range run {
			w.page.writeUnwrapped(f.mark, dim)
		}
		return
	}
	for i, r := range rest {
		if i >= f.indent || !unicode.IsSpace(r) {
			for _, r := range rest[i:] {
				w.page.writeUnwrapped(r, code)
			}
			break
		}
	}
}

// trimQuotes returns the line without the marks of at most this number of quotes.
func trimQuotes(line []rune, quotes int) []rune {
	for range quotes {
		at := 0
		for at < len(line) && at < 3 && line[at] == ' ' {
			at++
		}
		if at == len(line) || line[at] != '>' {
			break
		}
		line = line[at+1:]
		if len(line) > 0 && line[0] == ' ' {
			line = line[1:]
		}
	}
	return line
}
