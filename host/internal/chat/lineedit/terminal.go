package lineedit

import (
	"os"

	"golang.org/x/term"
)

// TerminalFile is the Terminal of an open terminal: keys come from In, and Out has the
// size.
type TerminalFile struct{ In, Out *os.File }

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Raw makes the terminal send each key at once, until restore is called. It returns an
// error if the input is not a terminal.
func (f TerminalFile) Raw() (restore func(), err error) {
	was, err := term.MakeRaw(int(f.In.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { term.Restore(int(f.In.Fd()), was) }, nil //nolint:errcheck // nothing else can be done
}

// Size returns the size of the terminal, 80 by 24 if it is unknown.
func (f TerminalFile) Size() (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Out.Fd()))
	if err != nil || columns < 1 || rows < 1 {
		return 80, 24
	}
	return columns, rows
}
