//go:build !unix

package lineedit

// stop does nothing: this system has no job control.
func stop() {}
