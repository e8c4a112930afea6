//go:build !race

package main

// raceEnabled says that the tests are built with the race detector.
const raceEnabled = false
