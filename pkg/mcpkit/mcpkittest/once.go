package mcpkittest

import "testing"

// Once skips a test in a build with the race detector. It is for long tests
// in which that has nothing to see, so that the build without it has shown all
// that there is: those that only drive binaries, which are built without it
// either way, and those of code that starts no goroutine.
func Once(t testing.TB) {
	t.Helper()
	if Raced {
		t.Skip("no race in it: the build without the race detector runs it")
	}
}
