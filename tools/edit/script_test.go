package main

import (
	"testing"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func TestTool(t *testing.T) {
	mcpkittest.Once(t)
	bin := mcpkittest.Build(t, "./tools/edit")
	mcpkittest.Snapshot(t, bin, "testdata/tool.json")
	mcpkittest.RunScripts(t, bin, "testdata/script")
	// What a model is told when its edit cannot be made, and the call it can
	// make of that.
	mcpkittest.RunScripts(t, bin, "testdata/failures")
}
