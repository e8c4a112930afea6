//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestSpecialFiles: special files are neither opened nor waited for.
func TestSpecialFiles(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(f.root, "fifo"), 0o644))
	require.NoError(t, os.Symlink("fifo", filepath.Join(f.root, "link")))
	for _, name := range []string{"fifo", "link"} {
		res := f.call(map[string]any{"file_path": name})
		require.True(t, res.IsError)
		require.Equal(t, toolerr.SpecialFile, res.Code, res.Text)
	}
	f.write("good", []byte("text\n"))
	res := f.call(map[string]any{"paths": []map[string]any{{"file_path": "fifo"}, {"file_path": "good"}}})
	require.False(t, res.IsError)
	require.Contains(t, res.Text, "SPECIAL_FILE")
	require.Contains(t, res.Text, "\n1\ttext")
}
