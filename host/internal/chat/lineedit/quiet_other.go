//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package lineedit

// Flush does nothing here.
func (f File) Flush() {}

// Quiet does nothing here: what is typed meanwhile shows.
func (f File) Quiet() (restore func()) { return func() {} }
