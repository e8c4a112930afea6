// Package lineedit reads what a person types at a terminal, as one text of one
// or several lines.
//
//	Enter                    ends the text, but after a backslash begins a line
//	Alt-Enter, Ctrl-J        begins a line
//	Ctrl-C                   discards the text; at an empty text: ErrInterrupt
//	Ctrl-D                   at an empty text: io.EOF
//	Up, Down                 a line up or down, else the history; Ctrl-P, Ctrl-N: the history
//	Left, Right, Home, End, Ctrl-A, -E, -B, -F, Alt-B, -F
//	Backspace, Delete, Ctrl-W, -U, -K, Alt-D; Ctrl-Y puts back what these took
//	Tab                      completes
//	Esc                      discards the text, with ReadOrEscape
//	Ctrl-L                   clears the screen
//	Ctrl-Z                   stops the program, as the shell has it
//
// Pasted text (bracketed paste) is inserted unchanged, with its line breaks. Control
// characters in the text are shown in a harmless form, see package screen.
//
// The terminal is raw only while a text is being read. Read restores its state in every
// case, also after a panic.
package lineedit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
)

// ErrInterrupt is the error for Ctrl-C at an empty text.
var ErrInterrupt = errors.New("interrupted")

// ErrEscape is the error for Esc if it ends a text.
var ErrEscape = errors.New("cancelled with Esc")

// errTooLong is the error of ReadLine for a line above maxLine.
var errTooLong = fmt.Errorf("a line is longer than %d bytes", maxLine)

// maxLine bounds a text, in runes, and a line of a pipe, in bytes.
const maxLine = 4 << 20

// A Terminal provides the terminal functions that an editor uses.
type Terminal interface {
	// Raw makes the terminal send each key at once, until restore is called.
	Raw() (restore func(), err error)

	// Size returns the numbers of columns and rows.
	Size() (columns, rows int)

	// FlushInput discards typed keys that were not read yet.
	FlushInput()
}

// An Editor reads texts. It is used by one goroutine.
type Editor struct {
	Terminal Terminal
	Out      io.Writer
	History  *History // nil: none

	// Complete returns all completions of a text, as whole texts; nil: no completion.
	Complete func(text string) []string

	keys keys
}

// New returns an editor for the keys of a source.
func New(from *Source, out io.Writer, t Terminal) *Editor {
	return &Editor{Terminal: t, Out: out, keys: keys{from: from}}
}

const (
	pasteOn   = "\x1b[?2004h"
	pasteOff  = "\x1b[?2004l"
	clearDown = "\x1b[J"
	clearAll  = "\x1b[H\x1b[2J"
)

// Read shows prompt and returns the text that the user types, which begins as initial.
// It returns ErrInterrupt after Ctrl-C and io.EOF after Ctrl-D in an empty text, or the
// error of ctx or of the terminal.
func (e *Editor) Read(ctx context.Context, prompt, initial string) (string, error) {
	return e.read(ctx, prompt, initial)
}

// ReadOrEscape does the same as Read, except that Esc ends it with ErrEscape.
func (e *Editor) ReadOrEscape(ctx context.Context, prompt, initial string) (string, error) {
	e.keys.escapes = true
	defer func() { e.keys.escapes = false }()
	return e.read(ctx, prompt, initial)
}

// read implements Read and ReadOrEscape.
func (e *Editor) read(ctx context.Context, prompt, initial string) (string, error) {
	r := &readState{editor: e, prompt: screen.Clean(prompt), historyIndex: e.History.len()}
	r.text.set(initial)
	if err := r.enterRaw(); err != nil {
		return "", err
	}
	defer r.restore()
	r.redraw()
	for {
		k, err := e.keys.readKey(ctx)
		if err == nil {
			var done bool
			if done, err = r.handleKey(k); done {
				r.moveBelow("")
				return string(r.text.runes), nil
			}
		}
		if err != nil {
			mark := ""
			if errors.Is(err, ErrInterrupt) {
				mark = "^C"
			}
			r.moveBelow(mark)
			return "", err
		}
	}
}

// ReadKey writes prompt, waits for one of the keys in choices, which are lower-case
// letters, and returns it. Ctrl-C and Ctrl-D return ErrInterrupt.
func (e *Editor) ReadKey(ctx context.Context, prompt, choices string) (rune, error) {
	r := &readState{editor: e, prompt: screen.Clean(prompt)}
	if err := r.enterRaw(); err != nil {
		return 0, err
	}
	defer r.restore()
	r.redraw()
	for {
		k, err := e.keys.readKey(ctx)
		if err == nil && (k.action == interrupt || k.action == eof) {
			err = ErrInterrupt
		}
		if err != nil {
			r.moveBelow("^C")
			return 0, err
		}
		if k.action == insert && len([]rune(k.text)) == 1 {
			if c := strings.ToLower(k.text); strings.Contains(choices, c) {
				r.text.set(c)
				r.redraw()
				r.moveBelow("")
				return []rune(c)[0], nil
			}
		}
	}
}

// DiscardInput discards typed keys that were not read yet, so that they do not answer
// the next question.
func (e *Editor) DiscardInput() {
	e.keys.discard()
	e.Terminal.FlushInput()
}

// A readState is the state of one call of Read or ReadKey.
type readState struct {
	editor    *Editor
	prompt    string
	text      editedText
	restore   func() // ends the raw mode
	cursorRow int    // row of the cursor, from the first shown row

	historyIndex int    // index of the shown history entry; the number of entries: none
	typed        string // the text that was replaced by a history entry
}

// enterRaw puts the terminal into raw mode until r.restore is called.
func (r *readState) enterRaw() error {
	restore, err := r.editor.Terminal.Raw()
	if err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	r.write(pasteOn)
	r.restore = func() {
		r.write(pasteOff)
		restore()
	}
	return nil
}

// write writes to the terminal and ignores errors.
func (r *readState) write(s string) {
	io.WriteString(r.editor.Out, s) //nolint:errcheck // reading ends if the terminal is gone
}

// redraw shows the text and the cursor.
func (r *readState) redraw() {
	columns, rows := r.editor.Terminal.Size()
	p := r.text.render(r.prompt, max(columns, 10), max(rows-1, 1))
	var b strings.Builder
	r.moveToStart(&b)
	b.WriteString(clearDown + strings.Join(p.rows, "\r\n"))
	if up := len(p.rows) - 1 - p.row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteByte('\r')
	if p.col > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", p.col)
	}
	r.cursorRow = p.row
	r.write(b.String())
}

// moveToStart adds to b the sequence that moves the cursor to the beginning of the
// shown text.
func (r *readState) moveToStart(b *strings.Builder) {
	if r.cursorRow > 0 {
		fmt.Fprintf(b, "\x1b[%dA", r.cursorRow)
	}
	b.WriteByte('\r')
}

// moveBelow writes mark after the text and moves the cursor to the line below it.
func (r *readState) moveBelow(mark string) {
	r.text.at = len(r.text.runes)
	r.redraw()
	r.write(mark + "\r\n")
}

// handleKey changes the text for a key. done is true if the text is complete. The error
// is ErrEscape, ErrInterrupt, io.EOF, or that of the terminal.
func (r *readState) handleKey(k key) (done bool, err error) {
	t := &r.text
	switch k.action {
	case nothing:
		return false, nil
	case enter:
		if t.at > 0 && t.at == t.lineEnd() && t.runes[t.at-1] == '\\' {
			t.removeRange(t.at-1, t.at, false)
			t.insert("\n")
			break
		}
		return true, nil
	case escape:
		return false, ErrEscape
	case interrupt:
		if len(t.runes) == 0 {
			return false, ErrInterrupt
		}
		r.moveBelow("^C")
		r.cursorRow = 0
		t.set("")
	case eof:
		if len(t.runes) == 0 {
			return false, io.EOF
		}
		t.apply(k)
	case suspend:
		r.moveBelow("")
		r.restore()
		suspendProcess()
		if err := r.enterRaw(); err != nil {
			return false, err
		}
		r.cursorRow = 0
	case clear:
		r.write(clearAll)
		r.cursorRow = 0
	case up, down:
		if by := map[action]int{up: -1, down: 1}[k.action]; !t.moveLine(by) {
			r.showHistory(by)
		}
	case earlier:
		r.showHistory(-1)
	case later:
		r.showHistory(1)
	case complete:
		r.completeText()
	default:
		t.apply(k)
	}
	r.redraw()
	return false, nil
}

// showHistory replaces the text by the history entry before (-1) or after (1) the shown
// one.
func (r *readState) showHistory(by int) {
	h := r.editor.History
	to := r.historyIndex + by
	if to < 0 || to > h.len() {
		return
	}
	if r.historyIndex == h.len() {
		r.typed = string(r.text.runes)
	}
	r.historyIndex = to
	if to == h.len() {
		r.text.set(r.typed)
		return
	}
	r.text.set(h.at(to))
}

// completeText extends the text before the cursor by what all its completions have in
// common. If that adds nothing and there are several completions, it lists them.
func (r *readState) completeText() {
	if r.editor.Complete == nil {
		return
	}
	before := string(r.text.runes[:r.text.at])
	found := r.editor.Complete(before)
	if len(found) == 0 {
		return
	}
	common := found[0]
	for _, f := range found[1:] {
		for !strings.HasPrefix(f, common) {
			common = common[:len(common)-1]
		}
	}
	if len(common) > len(before) && strings.HasPrefix(common, before) {
		r.text.insert(strings.ToValidUTF8(common[len(before):], ""))
		return
	}
	if len(found) > 1 {
		at := r.text.at
		r.moveBelow("")
		r.write(strings.Join(found, "  ") + "\r\n")
		r.text.at, r.cursorRow = at, 0
	}
}
