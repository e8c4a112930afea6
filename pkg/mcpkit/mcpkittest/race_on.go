//go:build race

package mcpkittest

// Raced reports whether the tests, but not the binaries that Build makes, are
// built with the race detector: they then take several times the time and
// memory.
const Raced = true
