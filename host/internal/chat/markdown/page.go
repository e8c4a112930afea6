package markdown

import (
	"io"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
)

// A style is the appearance of a character.
type style uint8

const (
	bold style = 1 << iota
	dim
	italic
	underlined
	struck
	code
)

// sgr returns the escape sequence (SGR) that sets a style, and only it.
func (s style) sgr() string {
	params := "0"
	for i, n := range []int{1, 2, 3, 4, 9, 36} {
		if s&(1<<i) != 0 {
			params += ";" + strconv.Itoa(n)
		}
	}
	return "\x1b[" + params + "m"
}

// A cell is a character with its style.
type cell struct {
	r rune
	s style
}

// An escaper replaces characters that control a terminal by a visible form.
type escaper struct{ before rune }

// write passes a character, or its visible form if it would control the terminal, to
// put.
func (g *escaper) write(c cell, put func(cell)) {
	before := g.before
	g.before = c.r
	if !screen.NeedsEscape(before, c.r) {
		put(c)
		return
	}
	for _, r := range screen.EscapeRune(before, c.r) {
		put(cell{r, c.s})
	}
}

// columns returns the number of terminal columns of cells.
func columns(cells []cell) int {
	n := 0
	for _, c := range cells {
		n += screen.Width(c.r)
	}
	return n
}

// A page writes lines that are wrapped between words. It collects its output until
// flush.
type page struct {
	out    io.Writer
	styled bool
	gate   escaper

	buf         []byte // output that is not written yet
	current     style  // style that was set last in the terminal
	width       int    // largest number of columns of a line
	hang        string // written before each line except the first
	marginWidth int    // the column after hang
	col         int    // columns that were written on the line

	gap  []cell // white space before the word
	word []cell
	wide bool // the word is a wide character, next to which a line can be wrapped
	join bool // the next rune belongs to the word nevertheless
}

// beginLine begins a line of the text, which is wrapped at width columns. It writes first
// before the line, and hang before its continuation lines. A hang wider than half of width
// is dropped; a first wider than that loses its leading spaces.
func (p *page) beginLine(width int, first, hang string) {
	if screen.Columns(hang) > width/2 {
		hang = ""
	}
	if screen.Columns(first) > width/2 {
		first = strings.TrimLeft(first, " ")
	}
	p.width, p.hang, p.marginWidth, p.col = width, hang, screen.Columns(hang), 0
	p.writeMargin(first)
}

// writeMargin writes the beginning of a line, dimmed.
func (p *page) writeMargin(text string) {
	for _, r := range text {
		p.emit(cell{r, dim})
	}
}

// freeColumns returns the number of free columns on the line.
func (p *page) freeColumns() int { return max(p.width-p.col, 0) }

// add adds a character of a word, which moves to a new line if it does not fit.
func (p *page) add(c cell) { p.gate.write(c, p.placeInWord) }

// placeInWord adds a character to the current word, or ends the word at white space.
// Between wide characters a line can break without a space.
func (p *page) placeInWord(c cell) {
	if c.r == ' ' || c.r == '\t' {
		p.endWord()
		if len(p.gap) < p.width {
			p.gap = append(p.gap, cell{' ', c.s})
		}
		return
	}
	w := screen.Width(c.r)
	if w > 0 && !p.join && (p.wide || w == 2) {
		p.endWord()
		p.wide = w == 2
	}
	p.join = c.r == '\u200d'
	p.word = append(p.word, c)
	if len(p.word) >= p.width-p.marginWidth {
		p.endWord()
	}
}

// endWord writes the word, on the next line if it does not fit.
func (p *page) endWord() {
	if len(p.word) > 0 {
		if p.col+len(p.gap)+columns(p.word) > p.width && p.col > p.marginWidth {
			p.newline()
			p.col = 0
			p.writeMargin(p.hang)
		} else {
			for _, c := range p.gap {
				p.emit(c)
			}
		}
		for _, c := range p.word {
			p.emit(c)
		}
		p.gap = p.gap[:0]
	}
	p.word, p.wide, p.join = p.word[:0], false, false
}

// writeUnwrapped writes a character at the current position; it does not wrap lines.
func (p *page) writeUnwrapped(r rune, s style) { p.gate.write(cell{r, s}, p.emit) }

// emit appends a character to the output at the current position.
func (p *page) emit(c cell) {
	p.setStyle(c.s)
	p.buf = append(p.buf, string(c.r)...)
	p.col += screen.Width(c.r)
}

// setStyle switches the terminal to a style, if it has another one.
func (p *page) setStyle(s style) {
	if p.styled && s != p.current {
		p.buf = append(p.buf, s.sgr()...)
		p.current = s
	}
}

// endLine writes the last word and ends the line of the text.
func (p *page) endLine() {
	p.endWord()
	p.newline()
}

// newline ends a line of the terminal with no style set.
func (p *page) newline() {
	p.gap = p.gap[:0]
	p.setStyle(0)
	p.buf = append(p.buf, '\n')
}

// flush writes the collected output.
func (p *page) flush() error {
	if len(p.buf) == 0 {
		return nil
	}
	_, err := p.out.Write(p.buf)
	p.buf = p.buf[:0]
	return err
}
