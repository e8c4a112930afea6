//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// TestSpecialFiles: special files are not opened and do not hang; loops of
// links end.
func TestSpecialFiles(t *testing.T) {
	root := tree(t, "a/b/c.txt=needle\n")
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o644))
	listener, err := net.Listen("unix", filepath.Join(root, "s"))
	require.NoError(t, err)
	defer listener.Close()
	require.NoError(t, os.Symlink("..", filepath.Join(root, "a", "up")))
	require.NoError(t, os.Symlink("loop", filepath.Join(root, "loop")))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(root, "zero")))
	client := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", root)
	got := client.Call("grep", `{"pattern":"needle","-C":0}`)
	require.Equal(t, "1 match in 1 file (searched 1; not searched: 2 special)\na/b/c.txt\n  1: needle\n", got.Text)
	for path, code := range map[string]string{"fifo": "SPECIAL_FILE", "s": "SPECIAL_FILE", "loop": "NOT_FOUND", "zero": "OUTSIDE_ROOT"} {
		got := client.Call("grep", map[string]any{"pattern": "x", "path": path})
		require.True(t, got.IsError, path)
		require.Equal(t, code, got.Code, "%s: %s", path, got.Text)
	}
	got = client.Call("grep", `{"pattern":"needle","path":"a/up/a/up/a/b","-C":0}`)
	require.Contains(t, got.Text, "1 match in 1 file")
}
