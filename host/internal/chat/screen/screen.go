package screen

import (
	"bytes"
	"io"
	"sync"
)

// A Screen is a terminal with text and, below it, a status line. The status line is
// shown only while the last line of the text is complete; it is erased before more
// text is written.
//
// Several goroutines may call its methods.
type Screen struct {
	out   io.Writer
	width func() int

	mu      sync.Mutex
	line    string // status line; "": none
	drawn   bool   // the status line is shown
	partial bool   // the last line of the text is incomplete
	held    bool   // a question has the terminal: between Hold and Release
	waiting []byte // text that was written while the screen was held
}

// New returns the screen of a terminal that understands escape sequences. width returns
// the number of its columns.
func New(out io.Writer, width func() int) *Screen { return &Screen{out: out, width: width} }

// eraseLine erases the line with the cursor.
const eraseLine = "\r\x1b[2K"

// Write writes text above the status line, or keeps it while the screen is held. It always
// returns len(text), with the error of the output. The text must be clean (see Clean).
func (s *Screen) Write(text []byte) (int, error) {
	if len(text) == 0 {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		s.waiting = append(s.waiting, text[:min(len(text), max(maxHeldBytes-len(s.waiting), 0))]...)
		return len(text), nil
	}
	return len(text), s.write(text)
}

// write writes text, which must not be empty, above the status line. The caller holds
// mu.
func (s *Screen) write(text []byte) error {
	var b bytes.Buffer
	s.eraseStatus(&b)
	b.Write(text)
	s.partial = text[len(text)-1] != '\n'
	s.drawStatus(&b)
	_, err := s.out.Write(b.Bytes())
	return err
}

// maxHeldBytes bounds the text that is kept while the screen is held, in bytes.
const maxHeldBytes = 1 << 20

// Hold gives the terminal to a question to the user, below the text and without the
// status line. Text that is written before Release is kept, up to maxHeldBytes, and
// written then.
func (s *Screen) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	s.eraseStatus(&b)
	if s.partial {
		b.WriteByte('\n')
		s.partial = false
	}
	if b.Len() > 0 {
		s.out.Write(b.Bytes()) //nolint:errcheck // Write returns the error
	}
	s.held = true
}

// Release ends Hold. The cursor must be at the beginning of a line.
func (s *Screen) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.waiting
	s.held, s.waiting = false, nil
	if len(text) > 0 {
		s.write(text) //nolint:errcheck // Write returns the error
		return
	}
	var b bytes.Buffer
	s.drawStatus(&b)
	s.out.Write(b.Bytes()) //nolint:errcheck // Write returns the error
}

// SetStatusLine replaces the status line by text, which is cleaned and cut to the
// width; "" removes it.
func (s *Screen) SetStatusLine(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == s.line && s.drawn {
		return
	}
	var b bytes.Buffer
	s.eraseStatus(&b)
	s.line = text
	s.drawStatus(&b)
	if b.Len() > 0 {
		s.out.Write(b.Bytes()) //nolint:errcheck // Write returns the error
	}
}

// EndLine ends the last line of the text if it is incomplete.
func (s *Screen) EndLine() {
	s.mu.Lock()
	partial := s.partial
	s.mu.Unlock()
	if partial {
		s.Write([]byte{'\n'}) //nolint:errcheck // Write returns the error
	}
}

// eraseStatus adds to b the sequence that removes the status line, if it is shown.
func (s *Screen) eraseStatus(b *bytes.Buffer) {
	if s.drawn {
		b.WriteString(eraseLine)
		s.drawn = false
	}
}

// drawStatus adds the status line to b, unless text of an incomplete line is there or a
// question has the terminal.
func (s *Screen) drawStatus(b *bytes.Buffer) {
	if s.line == "" || s.partial || s.held {
		return
	}
	b.WriteString("\x1b[2m" + OneLine(s.line, s.width()-1) + "\x1b[0m")
	s.drawn = true
}
