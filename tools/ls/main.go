// Mcp-ls is an MCP server with one tool, ls, that shows the directories it
// is given as trees.
//
//	mcp-ls [DIR…] [flags]
//
// It serves the Model Context Protocol on standard input and output. Without
// a DIR or --root the roots come from MCP_ROOT, CLAUDE_PROJECT_DIR, the
// client, or the working directory.
//
// A call lists a tree breadth-first, a fair share of every directory, with
// line counts, sizes and git's status letters. What .gitignore and the like
// ignore is collapsed, .git is left out, links are not followed.
//
// Outside any git repository, .gitignore counts in a directory that has a
// project file (package.json, go.mod, Makefile and the like), and below it.
//
// To try it:
//
//	echo '{"path":"."}' | mcp-ls
//	mcp-ls --call '{"path":"src","depth":3,"long":true}'
//
// git is asked what changed only where it is found outside the roots, with
// everything off that a repository's configuration could make it run, and for
// at most 200 ms.
package main

import (
	_ "embed"
	"errors"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/state"
	"github.com/toolroom-mcp/toolroom/pkg/walk"
)

//go:embed main.go
var source string

func main() {
	cmd := mcpkit.NewCommand("ls", "List directory", source)
	cmd.Instructions = "ls shows directories as trees. " +
		"Paths are relative to the first root, or absolute; what a result shows can be passed back as it is. " +
		"Use offset to go on where a result was cut."
	var box sandbox.Config
	box.AddFlags(cmd.Flags)
	cmd.Positional, cmd.CheckPositional, cmd.Roots = box.AddRoots, box.CheckRoots, box.Names
	cmd.Memory = 48 << 20
	var st state.Config // all tools take its flags; this one keeps none
	st.AddFlags(cmd.Flags)
	cmd.Tools = func() ([]*mcpkit.Tool, error) {
		if err := errors.Join(box.Validate(), st.Validate()); err != nil {
			return nil, err
		}
		box.ClientRoots, box.Finder = mcpkit.ClientRoots, walk.Named
		tool, err := newTool(sandbox.New(box))
		return []*mcpkit.Tool{tool}, err
	}
	os.Exit(cmd.Main())
}
