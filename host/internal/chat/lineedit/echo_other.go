//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package lineedit

// FlushInput does nothing here.
func (f TerminalFile) FlushInput() {}

// DisableEcho does nothing on this system: typed characters are shown.
func (f TerminalFile) DisableEcho() (restore func()) { return func() {} }

// DisableLines does nothing on this system, and ok is false.
func (f TerminalFile) DisableLines() (restore func(), ok bool) { return func() {}, false }
