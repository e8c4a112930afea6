//go:build !race

package proc_test

const raced = false
