// Mcp-edit is an MCP server with one tool, edit, that replaces text in files
// and leaves every byte beside it as it is.
//
//	mcp-edit [DIR…] [flags]
//
// It serves the Model Context Protocol on standard input and output. Without
// a DIR or --root the roots come from MCP_ROOT, CLAUDE_PROJECT_DIR, the
// client, or the working directory.
//
// A text to be replaced has to be in the file once. Where it is not there as
// it was sent, line endings, pasted line numbers, blanks at the ends of lines,
// typeset punctuation and a uniform indentation are overlooked, in this order,
// and the answer says so; nothing is ever found because it is similar. To try
// it:
//
//	echo '{"file_path":"a.txt","old_string":"one","new_string":"two"}' | mcp-edit
//	mcp-edit --call '{"file_path":"a.txt","undo":true}'
//
// A file is replaced in one step (written beside, synced, renamed), and
// processes that edit the same file take turns, so that a crash leaves the old
// or the new file and no edit is lost. What an edit took away is kept in the
// state directory, for undo.
//
// Bugs: a file is held in memory twice while it is edited, up to 100 MiB.
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
	cmd := mcpkit.NewCommand("edit", "Edit file", source)
	cmd.Instructions = "edit replaces text in files; everything else in them stays as it is, byte for byte. " +
		"Paths are relative to the first root, or absolute. " +
		"Errors say what the file has instead and what to send next."
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
