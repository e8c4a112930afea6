package mcpkittest

import "testing"

// SkipUnderRace skips a test in a build with the race detector. It is for long
// tests in which the detector cannot find anything: tests that only drive
// binaries, which are built without it, and tests of code that starts no
// goroutine.
func SkipUnderRace(t testing.TB) {
	t.Helper()
	if RaceEnabled {
		t.Skip("no race in it: the build without the race detector runs it")
	}
}
