package mcpkittest

import (
	"os"
	"syscall"

	"testing"

	"github.com/stretchr/testify/require"
)

// WriteProgram writes a program that can be started at once, even while other
// goroutines start processes: between fork and exec such a process holds the
// file open, and the system does not start a program that is open for writing.
func WriteProgram(t testing.TB, path string, text []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, text, 0o755) //nolint:gosec // a program
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
}

// CopyProgram copies a program to another file, which can be started at once.
func CopyProgram(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	WriteProgram(t, to, text)
}
