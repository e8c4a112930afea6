package lineedit

import (
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
)

// An editedText is the edited text with the cursor.
type editedText struct {
	runes  []rune
	at     int    // index of the rune after the cursor
	killed []rune // removed last with keep; inserted by yank
}

// set replaces the whole text and puts the cursor at its end.
func (t *editedText) set(s string) {
	t.runes = []rune(s)
	t.at = len(t.runes)
}

// insert inserts a text at the cursor, as much of it as fits into maxLine characters.
func (t *editedText) insert(s string) {
	more := []rune(s)
	if len(t.runes)+len(more) > maxLine {
		more = more[:max(maxLine-len(t.runes), 0)]
	}
	t.runes = append(t.runes[:t.at:t.at], append(more, t.runes[t.at:]...)...)
	t.at += len(more)
}

// removeRange removes the runes from one index up to another, puts the cursor there,
// and keeps them for yank if keep is set.
func (t *editedText) removeRange(from, to int, keep bool) {
	if from == to {
		return
	}
	if keep {
		t.killed = append([]rune(nil), t.runes[from:to]...)
	}
	t.runes = append(t.runes[:from:from], t.runes[to:]...)
	t.at = from
}

// charIndex returns the index of the character before (by is -1) or after (1) the one
// at at; combining runes belong to their character.
func (t *editedText) charIndex(at, by int) int {
	for at += by; at > 0 && at < len(t.runes) && (screen.Width(t.runes[at]) == 0 || t.runes[at-1] == '\u200d'); at += by {
	}
	return min(max(at, 0), len(t.runes))
}

// wordBoundary returns the index of the beginning of the word before the cursor (by is
// -1), or of the end of the word after it (1).
func (t *editedText) wordBoundary(by int) int {
	at := t.at
	next := func() rune {
		if by < 0 {
			return t.runes[at-1]
		}
		return t.runes[at]
	}
	within := func() bool { return by < 0 && at > 0 || by > 0 && at < len(t.runes) }
	in := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r) }
	for within() && !in(next()) {
		at += by
	}
	for within() && in(next()) {
		at += by
	}
	return at
}

// lineBegin returns the index of the first rune of the cursor's line.
func (t *editedText) lineBegin() int {
	at := t.at
	for at > 0 && t.runes[at-1] != '\n' {
		at--
	}
	return at
}

// lineEnd returns the index after the last rune of the cursor's line.
func (t *editedText) lineEnd() int {
	at := t.at
	for at < len(t.runes) && t.runes[at] != '\n' {
		at++
	}
	return at
}

// moveLine moves the cursor a line up (-1) or down (1), to the same column if possible.
// It returns false, and moves nothing, if there is no such line.
func (t *editedText) moveLine(by int) bool {
	column := screen.Columns(string(t.runes[t.lineBegin():t.at]))
	was := t.at
	if by < 0 {
		if t.at = t.lineBegin(); t.at == 0 {
			t.at = was
			return false
		}
		t.at--
		t.at = t.lineBegin()
	} else {
		if t.at = t.lineEnd(); t.at == len(t.runes) {
			t.at = was
			return false
		}
		t.at++
	}
	for end := t.lineEnd(); t.at < end && column > 0; t.at++ {
		column -= screen.Width(t.runes[t.at])
	}
	return true
}

// apply changes the text for an editing key. It ignores other keys.
func (t *editedText) apply(k key) {
	switch k.action {
	case insert:
		t.insert(k.text)
	case newline:
		t.insert("\n")
	case left:
		t.at = t.charIndex(t.at, -1)
	case right:
		t.at = t.charIndex(t.at, 1)
	case home:
		t.at = t.lineBegin()
	case end:
		t.at = t.lineEnd()
	case wordLeft:
		t.at = t.wordBoundary(-1)
	case wordRight:
		t.at = t.wordBoundary(1)
	case backspace:
		t.removeRange(t.charIndex(t.at, -1), t.at, false)
	case remove, eof:
		t.removeRange(t.at, t.charIndex(t.at, 1), false)
	case removeWordLeft:
		t.removeRange(t.wordBoundary(-1), t.at, true)
	case removeWordRight:
		t.removeRange(t.at, t.wordBoundary(1), true)
	case removeLeft:
		t.removeRange(t.lineBegin(), t.at, true)
	case removeRight:
		to := t.lineEnd()
		if to == t.at && to < len(t.runes) {
			to++
		}
		t.removeRange(t.at, to, true)
	case yank:
		t.insert(string(t.killed))
	}
}

// A rendering is how a text is shown: rows of a terminal and the position of the cursor
// in them, from 0.
type rendering struct {
	rows     []string
	row, col int
}

// render returns a text as rows of at most width-1 columns, with the prompt before the
// first line and as many spaces before the others; none if the prompt is wider than half
// the width. At most height rows are returned, with the cursor's among them; the cursor's
// row counts from the first one returned.
func (t *editedText) render(prompt string, width, height int) rendering {
	margin := screen.Columns(prompt)
	if margin > width/2 {
		margin = 0
	}
	var p rendering
	var b strings.Builder
	col := 0
	wrap := func() {
		p.rows = append(p.rows, b.String())
		b.Reset()
		b.WriteString(strings.Repeat(" ", margin))
		col = margin
	}
	put := func(r rune) {
		w := screen.Width(r)
		if col+w > width-1 { // the last column stays empty, because terminals differ in wrapping there
			wrap()
		}
		b.WriteRune(r)
		col += w
	}
	for _, r := range prompt {
		put(r)
	}
	before := rune(0)
	for i, r := range t.runes {
		if i == t.at {
			p.row, p.col = len(p.rows), col
		}
		if r == '\n' {
			wrap()
			continue
		}
		shown := screen.EscapeRune(before, r)
		before = r
		if r == '\t' {
			shown = "    "
		}
		row := len(p.rows)
		for j, r := range shown {
			put(r)
			if i == t.at && j == 0 && len(p.rows) > row { // the cursor moves to the next row with its character
				p.row, p.col = len(p.rows), margin
			}
		}
	}
	if t.at == len(t.runes) {
		p.row, p.col = len(p.rows), col
	}
	p.rows = append(p.rows, b.String())
	if first := max(p.row-height+1, 0); len(p.rows) > height {
		p.rows = p.rows[first:min(first+height, len(p.rows))]
		p.row -= first
	}
	return p
}
