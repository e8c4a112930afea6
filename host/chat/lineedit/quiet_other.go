//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package lineedit

// Quiet does nothing here: what is typed meanwhile shows.
func (f File) Quiet() (restore func()) { return func() {} }
