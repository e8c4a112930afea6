//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// TestSizes checks that a model receives no more bytes than the limits permit.
func TestSizes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, corpus(dir))
	t.Setenv("MCP_STATE_DIR", t.TempDir())
	binary := func(tool string) []string {
		return []string{mcpkittest.Build(t, "./tools/"+tool), "--root", dir}
	}
	total, err := listSize(binary)
	require.NoError(t, err)
	require.LessOrEqual(t, total, maxList, "tools/list of all tools")
	for _, task := range tasks() {
		t.Run(task.name, func(t *testing.T) {
			size, err := resultSize(binary(task.tool), "tools/call", callOf(task.tool, task.arguments))
			require.NoError(t, err)
			if task.limit > 0 {
				require.LessOrEqual(t, size, task.limit)
			}
			require.Greater(t, size, 50, "an answer")
		})
	}
}
