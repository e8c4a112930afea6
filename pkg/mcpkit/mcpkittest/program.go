package mcpkittest

import (
	"os"
	"syscall"

	"testing"

	"github.com/stretchr/testify/require"
)

// WriteProgram writes a program that can be started at once, also where other
// goroutines start processes meanwhile: until such a process runs its own program
// it has the file open, too, and the system starts no program that is open for
// writing.
func WriteProgram(t testing.TB, path string, text []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, text, 0o755) //nolint:gosec // a program
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
}

// CopyProgram writes the program of one file to another, see WriteProgram.
func CopyProgram(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	WriteProgram(t, to, text)
}
