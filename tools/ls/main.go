// Mcp-ls is an MCP server with one tool, ls, that lists directories as trees.
//
//	mcp-ls [DIR…] [flags]
//
// It serves the Model Context Protocol on standard input and output. Without
// a DIR or --root the roots come from MCP_ROOT, CLAUDE_PROJECT_DIR, the
// client, or the working directory.
//
// A call lists a tree breadth-first. If there is no room for all entries, the
// directories take turns and show ten entries at a time. A call also shows line
// counts, sizes and git status letters. Ignored directories (by .gitignore and the
// like) are collapsed, .git is left out, and symbolic links are not followed.
//
// Outside any git repository, .gitignore applies in a directory that has a
// project file (package.json, go.mod, Makefile and the like), and below it.
//
// To try it:
//
//	echo '{"path":"."}' | mcp-ls
//	mcp-ls --call '{"path":"src","depth":3,"long":true}'
//
// The git status comes from a git program outside the roots. It runs for at
// most 200 ms, with all settings disabled that let a repository run other
// programs.
package main

import (
	_ "embed"
	"errors"
	"os"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

//go:embed main.go
var source string

func main() {
	cmd := mcpkit.NewCommand("ls", "List directory", source)
	cmd.Instructions = "ls shows directories as trees. " +
		"Paths are relative to the first root, or absolute; paths in results can be passed back unchanged. " +
		"Use offset to continue a truncated result."
	var box sandbox.Config
	box.AddFlags(cmd.Flags)
	cmd.Positional, cmd.CheckPositional, cmd.Roots = box.AddRoots, box.CheckRoots, box.ShownRoots
	cmd.Memory = 48 << 20
	var st state.Config // all tools accept its flags; ls keeps no state
	st.AddFlags(cmd.Flags)
	cmd.Tools = func() ([]*mcpkit.Tool, error) {
		if err := errors.Join(box.Validate(), st.Validate()); err != nil {
			return nil, err
		}
		box.ClientRoots, box.Finder = mcpkit.ClientRoots, walk.FindNamed
		tool, err := newTool(sandbox.New(box))
		return []*mcpkit.Tool{tool}, err
	}
	os.Exit(cmd.Main())
}
