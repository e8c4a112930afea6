//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package lineedit

import "golang.org/x/sys/unix"

// FlushInput discards typed keys that were not read yet.
func (f TerminalFile) FlushInput() { flushInput(int(f.In.Fd())) }

// DisableEcho turns the echo off until restore is called. Keys that interrupt or stop the
// program still work.
func (f TerminalFile) DisableEcho() (restore func()) {
	fd := int(f.In.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return func() {}
	}
	quiet := *was
	quiet.Lflag &^= unix.ECHO
	if unix.IoctlSetTermios(fd, setTermios, &quiet) != nil {
		return func() {}
	}
	return func() { unix.IoctlSetTermios(fd, setTermios, was) } //nolint:errcheck // nothing else can be done
}
