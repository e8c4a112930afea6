package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// TestMemory: consecutive edits of a large file take at most twice its size in
// memory.
func TestMemory(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	f := newFixture(t)
	const size, base = 100_000_000, 64 << 20
	line := []byte("a line of a file that is nearly as large as files may be here\n")
	half := bytes.Repeat(line, size/2/len(line))
	f.write("large.txt", bytes.Join([][]byte{half, []byte("version 0\n"), half}, nil))
	c := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/edit"), f.root, "--state", f.kept.Dir)
	for i := range 4 {
		got := c.Call("edit", map[string]any{"file_path": "large.txt", "old_string": fmt.Sprintf("version %d\n", i), "new_string": fmt.Sprintf("version %d\n", i+1)})
		require.False(t, got.IsError, got.Text)
		got = c.Call("edit", map[string]any{"file_path": "large.txt", "old_string": "a line that is not there, and nothing like it", "new_string": "x"})
		require.Equal(t, "NO_MATCH", got.Code)
	}
	if _, peak, ok := mcpkittest.RSS(t, c.PID()); ok {
		t.Logf("peak %d MB for a file of %d MB", peak>>20, size>>20)
		require.Less(t, peak, int64(2*size+base))
	}
}
