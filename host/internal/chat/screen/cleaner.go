package screen

import (
	"io"
	"unicode/utf8"
)

// A Cleaner is a writer that writes text as Clean returns it, also if a character
// arrives in pieces.
type Cleaner struct {
	out     io.Writer
	partial []byte // incomplete UTF-8 sequence
	before  rune   // last rune
	cr      bool   // the last rune was a carriage return, which can belong to a line end
	ended   bool   // the last line is complete
}

// NewCleaner returns a writer to out.
func NewCleaner(out io.Writer) *Cleaner { return &Cleaner{out: out, ended: true} }

// Write writes text as Clean returns it. It holds back an incomplete character or a carriage
// return at the end until the next Write or End. It always returns len(text), with the error
// of the underlying writer.
func (c *Cleaner) Write(text []byte) (int, error) {
	n := len(text)
	text = append(c.partial, text...)
	c.partial = nil
	var clean []byte
	for len(text) > 0 {
		if !utf8.FullRune(text) {
			c.partial = append([]byte(nil), text...)
			break
		}
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		if c.cr && r != '\n' {
			clean = append(clean, EscapeRune(0, '\r')...)
		}
		if c.cr = r == '\r'; !c.cr {
			clean = append(clean, EscapeRune(c.before, r)...)
		}
		c.before = r
	}
	return n, c.put(clean)
}

// End writes held text, and a line end if the last line has none. Then another text can
// begin.
func (c *Cleaner) End() error {
	var clean []byte
	if c.cr {
		clean = append(clean, EscapeRune(0, '\r')...)
	}
	for range c.partial {
		clean = append(clean, string(utf8.RuneError)...)
	}
	c.cr, c.partial, c.before = false, nil, 0
	if len(clean) > 0 || !c.ended {
		clean = append(clean, '\n')
	}
	return c.put(clean)
}

// put writes clean text, and records whether it ended with a line end.
func (c *Cleaner) put(clean []byte) error {
	if len(clean) == 0 {
		return nil
	}
	c.ended = clean[len(clean)-1] == '\n'
	_, err := c.out.Write(clean)
	return err
}
