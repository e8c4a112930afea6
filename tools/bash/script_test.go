package main

import (
	"os"
	"testing"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

func TestMain(m *testing.M) {
	proc.Init()
	os.Exit(m.Run())
}

func TestTool(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	bin := mcpkittest.Build(t, "./tools/bash")
	mcpkittest.Snapshot(t, bin, "testdata/tool.json")
	mcpkittest.RunScripts(t, bin, "testdata/script")
}
