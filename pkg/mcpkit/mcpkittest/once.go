package mcpkittest

import "testing"

// Once skips a test in a build with the race detector. It is for long tests
// that only drive binaries: those are built without the detector either way, so
// that the build without it has shown all that there is to see.
func Once(t testing.TB) {
	t.Helper()
	if Raced {
		t.Skip("drives binaries only: the build without the race detector runs it")
	}
}
