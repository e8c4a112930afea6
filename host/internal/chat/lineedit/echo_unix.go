//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package lineedit

import "golang.org/x/sys/unix"

// FlushInput discards typed keys that were not read yet.
func (f TerminalFile) FlushInput() { flushInput(int(f.In.Fd())) }

// DisableEcho turns the echo off until restore is called. Keys that interrupt or stop the
// program still work.
func (f TerminalFile) DisableEcho() (restore func()) {
	restore, _ = f.change(func(mode *unix.Termios) { mode.Lflag &^= unix.ECHO })
	return restore
}

// DisableLines makes the terminal send each key at once, without a limit on the length of a line and
// without an echo, until restore is called. Keys that interrupt or stop the program still work. ok
// is false if the terminal cannot be changed.
func (f TerminalFile) DisableLines() (restore func(), ok bool) {
	return f.change(func(mode *unix.Termios) {
		mode.Lflag &^= unix.ECHO | unix.ICANON
		mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	})
}

// change changes the mode of the terminal until restore is called. ok is false if that fails.
func (f TerminalFile) change(set func(*unix.Termios)) (restore func(), ok bool) {
	fd := int(f.In.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return func() {}, false
	}
	changed := *was
	set(&changed)
	if unix.IoctlSetTermios(fd, setTermios, &changed) != nil {
		return func() {}, false
	}
	return func() { unix.IoctlSetTermios(fd, setTermios, was) }, true //nolint:errcheck // nothing else can be done
}
