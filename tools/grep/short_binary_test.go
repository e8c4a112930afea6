package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// TestShortBinaries: the beginning of a PNG or a zip archive without a NUL is
// binary in the first search and in later ones, and a text that only names the
// format is not.
func TestShortBinaries(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.png": "\x89PNG\r\n\x1a\nword", "b.zip": "PK\x03\x04\x14\x08\x08 a word in a name\n", "c.gz": "\x1f\x8b\x08\x08word\n",
		"d.txt": "PK is a word\n", "e.txt": "GIF89a is a word\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	client := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", root)
	for range 4 { // the later ones may use the index
		got := client.Call("grep", map[string]any{"pattern": "word", "output_mode": "files_with_matches", "sort": "path"})
		require.False(t, got.IsError, got.Text)
		require.Contains(t, got.Text, "2 files match")
		require.Contains(t, got.Text, "3 binary")
		require.Contains(t, got.Text, "d.txt\ne.txt\n")
	}
	got := client.Call("grep", map[string]any{"pattern": "word", "path": "a.png"})
	require.Contains(t, got.Text, "0 matches")
	require.Contains(t, got.Text, "1 binary")
}
