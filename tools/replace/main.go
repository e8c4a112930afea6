// Mcp-replace is an MCP server with one tool, replace, that writes whole files:
// a new file, or new content for an existing one.
//
//	mcp-replace [DIR…] [flags]
//
// It serves the Model Context Protocol on standard input and output. Without
// a DIR or --root the roots come from MCP_ROOT, CLAUDE_PROJECT_DIR, the
// client, or the working directory.
//
// Files are replaced atomically: if the process dies, the name leads to the old
// file or to the new one. Encoding, byte order mark, line endings, mode and owner
// are kept. A file that changed since it was viewed is only overwritten with
// overwrite=true; undo=true of mcp-edit restores overwritten content. To try it:
//
//	mcp-replace --call '{"file_path":"notes/today.md","content":"# Today\n"}'
//	mcp-replace --call '{"file_path":"go.mod","content":"module x\n","dry_run":true}'
//
// With --require-view, existing files must be viewed before they are
// overwritten. With --keep-hardlinks, a file with several names is written in
// place. Values in .env and .npmrc files are masked: *** in content keeps the
// masked value.
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
	cmd := mcpkit.NewCommand("replace", "Write file", source)
	cmd.Instructions = "replace writes whole files; to change part of a file, use edit. " +
		"Paths are relative to the first root, or absolute. " +
		"If a file changed since you viewed it, the call fails and shows the change."
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
