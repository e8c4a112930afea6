//go:build !unix

package lineedit

// suspendProcess does nothing: this system has no job control.
func suspendProcess() {}
