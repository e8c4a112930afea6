// Mcp-edit is an MCP server with one tool, edit, that replaces text in files
// and keeps every other byte.
//
//	mcp-edit [DIR…] [flags]
//
// It serves the Model Context Protocol on standard input and output. Without
// a DIR or --root the roots come from MCP_ROOT, CLAUDE_PROJECT_DIR, the
// client, or the working directory.
//
// The text to replace must match exactly one place in the file. Without an
// exact match, differences in line endings, pasted line numbers, trailing
// whitespace, curly quotes and dashes, and uniform indentation are ignored, in
// this order, and the answer says so. Similar text never matches. To try it:
//
//	echo '{"file_path":"a.txt","old_string":"one","new_string":"two"}' | mcp-edit
//	mcp-edit --call '{"file_path":"a.txt","undo":true}'
//
// Files are replaced atomically (temporary file, sync, rename), and processes
// that edit the same file take turns: a crash leaves the old or the new file,
// and no edit is lost. The replaced text is kept in the state directory for
// undo.
//
// Limits: files up to 100 MiB; an edit needs memory for two copies of the file.
package main

import (
	_ "embed"
	"os"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

//go:embed main.go
var source string

func main() {
	cmd := mcpkit.NewCommand("edit", "Edit file", source)
	cmd.Instructions = "edit replaces text in files and keeps every other byte. " +
		"Paths are relative to the first root, or absolute. " +
		"Errors show the file's text and what to send next."
	var sandboxConfig sandbox.Config
	sandboxConfig.AddFlags(cmd.Flags)
	cmd.Positional, cmd.CheckPositional, cmd.Roots = sandboxConfig.AddRoots, sandboxConfig.CheckRoots, sandboxConfig.ShownRoots
	var stateConfig state.Config
	stateConfig.AddFlags(cmd.Flags)
	var config Config
	config.AddFlags(cmd.Flags)
	cmd.Tools = func() ([]*mcpkit.Tool, error) { return newTools(sandboxConfig, stateConfig, config) }
	os.Exit(cmd.Main())
}
