//go:build race

package main

// raceEnabled says that the tests, but not the binary, are built with the race
// detector; machines that do so are slow, too.
const raceEnabled = true
