package main

import (
	"testing"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func TestTool(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	bin := mcpkittest.Build(t, "./tools/edit")
	mcpkittest.Snapshot(t, bin, "testdata/tool.json")
	mcpkittest.RunScripts(t, bin, "testdata/script")
	// The answers to failed edits, and calls that a model can make from them.
	mcpkittest.RunScripts(t, bin, "testdata/failures")
}
