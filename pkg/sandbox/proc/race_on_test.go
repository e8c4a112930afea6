//go:build race

package proc_test

// raced tests take several times as long, and memory for what they watch.
const raced = true
