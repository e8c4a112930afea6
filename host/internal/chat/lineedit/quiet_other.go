//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package lineedit

// Flush does nothing here.
func (f File) Flush() {}

// Quiet does nothing on this system: typed characters are shown.
func (f File) Quiet() (restore func()) { return func() {} }
