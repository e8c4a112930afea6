package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func TestTool(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	bin := beside(t, "mcp-host", "mcp-ls", "mcp-glob", "mcp-grep", "mcp-view")
	mcpkittest.Snapshot(t, bin, "testdata/tool.json", "--no-state")
	mcpkittest.RunScripts(t, bin, "testdata/script")
}

// beside copies the tool into a directory with some of the binaries that it
// needs, and returns its path there. mcp-host is a scripted host that executes
// its prompt; the other binaries are empty files, since the scripted host
// starts no tool.
func beside(t testing.TB, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	exe := ""
	if runtime.GOOS == "windows" {
		exe = ".exe"
	}
	bin := filepath.Join(dir, "mcp-dispatch_agent"+exe)
	copyFile(t, mcpkittest.Build(t, "./tools/dispatch_agent"), bin)
	for _, name := range names {
		if name == "mcp-host" {
			copyFile(t, mcpkittest.Build(t, "./tools/dispatch_agent/testdata/host"), filepath.Join(dir, name+exe))
			continue
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+exe), nil, 0o755))
	}
	return bin
}

// copyFile makes a hard link to a file, or a copy.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	mcpkittest.CopyProgram(t, from, to)
}
