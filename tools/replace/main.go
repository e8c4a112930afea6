// Mcp-replace is an MCP server with one tool, replace, that writes a whole
// file: a new one, or new content for one that exists.
//
//	mcp-replace [DIR…] [flags]
//
// It serves the Model Context Protocol on standard input and output. Without
// a DIR or --root the roots come from MCP_ROOT, CLAUDE_PROJECT_DIR, the
// client, or the working directory.
//
// A file is replaced all or nothing: whenever the process dies, the name
// leads to the old file or to the new one. Encoding, byte order mark, line
// endings, mode and owner stay. A file that changed since it was seen is not
// overwritten unless told to; what was overwritten can be brought back with
// undo of mcp-edit. To try it:
//
//	mcp-replace --call '{"file_path":"notes/today.md","content":"# Today\n"}'
//	mcp-replace --call '{"file_path":"go.mod","content":"module x\n","dry_run":true}'
//
// --require-view refuses to overwrite what was never viewed, --keep-hardlinks
// writes a file with several names in place. The values of .env and .npmrc
// files are hidden: *** in the content keeps the value that it stands for.
package main

import (
	_ "embed"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/state"
)

//go:embed main.go
var source string

func main() {
	cmd := mcpkit.NewCommand("replace", "Write file", source)
	cmd.Instructions = "replace writes whole files; to change a part of one, use edit. " +
		"Paths are relative to the first root, or absolute. " +
		"A file that changed since you saw it is refused with what changed."
	var box sandbox.Config
	box.AddFlags(cmd.Flags)
	cmd.Positional, cmd.CheckPositional, cmd.Roots = box.AddRoots, box.CheckRoots, box.Names
	var kept state.Config
	kept.AddFlags(cmd.Flags)
	var own Config
	own.AddFlags(cmd.Flags)
	cmd.Tools = func() ([]*mcpkit.Tool, error) { return tools(box, kept, own) }
	os.Exit(cmd.Main())
}
