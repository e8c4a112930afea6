//go:build race

package mcpkittest

// RaceEnabled reports whether the tests are built with the race detector: they
// then take several times the time and memory. The binaries that Build makes are
// built without it.
const RaceEnabled = true
