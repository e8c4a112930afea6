//go:build !unix

package lineedit

// stop does nothing: there are no jobs.
func stop() {}
