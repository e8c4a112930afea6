//go:build !race

package mcpkittest

// Raced says that the tests, though not the binaries that Build makes, are built
// with the race detector: they take several times as long, and as much memory.
const Raced = false
