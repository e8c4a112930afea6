package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each figure of README is one of the report.
func TestFiguresOfReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	words := strings.Join(strings.Fields(string(text)), " ")
	r := measured(t)
	value := func(title, about, name, column string) float64 {
		v, err := r.cell(title, about, name, column)
		require.NoError(t, err)
		return v
	}
	median := func(title, about, program string) float64 { return value(title, about, program, "median") }
	gateways, word, tree := "other gateways to a stdio server. 64 calls", "`StatusTeapot`", "Size of the results that a model receives"
	paused, sustained := "each after a pause of 50ms", "one right after the other. One run is the median of 41"
	for _, want := range []string{
		fmt.Sprintf("in %s bytes. The reference filesystem server's `directory_tree` always lists all levels and sends %s bytes", figure(value("Size of results", tree, "two levels of directories", "toolroom")),
			figure(value("Size of results", tree, "two levels of directories", "server-filesystem"))),
		fmt.Sprintf("a call of `bash` takes %.1f to %.1f ms longer than `bash -c`.", median("Commands", paused, "mcp-bash, L2")-median("Commands", paused, "bash"),
			median("Commands", sustained, "mcp-bash, L2")-median("Commands", sustained, "bash")),
		fmt.Sprintf("ripgrep takes %s ms. The tool `grep` takes %s ms in its first call and %s ms in later calls", figure(median("Searching", word, "ripgrep")),
			figure(median("Searching", word, "grep, first call")), figure(median("Searching", word, "grep, later call"))),
		fmt.Sprintf("adds %.0f µs to a call over stdio", median("Calls through the host", "One call in flight", "mcp-host stdio")-median("Calls through the host", "One call in flight", "direct")),
		fmt.Sprintf("it forwards %s calls a second; the npm packages `mcp-proxy` (not TBXark's) and `supergateway` forward %s and %s.", figure(median("Calls through the host", gateways, "mcp-host serve")),
			figure(median("Calls through the host", gateways, "mcp-proxy")), figure(median("Calls through the host", gateways, "supergateway"))),
	} {
		require.True(t, strings.Contains(words, want), "README.md does not say what %s says: %s", results, want)
	}
}
