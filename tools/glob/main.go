// Mcp-glob is an MCP server with one tool, glob, that finds files and
// directories by name.
//
//	mcp-glob [DIR…] [flags]
//
// It serves the Model Context Protocol on standard input and output. Without
// a DIR or --root the roots come from MCP_ROOT, CLAUDE_PROJECT_DIR, the
// client, or the working directory.
//
// Patterns use doublestar syntax: * ? [abc] [[:upper:]] {a,b}, and ** for any
// number of directories. A pattern without a slash matches at any depth, a
// pattern that ends in a slash matches directories only. Files ignored by
// .gitignore, .ignore, .git/info/exclude and git's global excludes are skipped
// and counted. The .git directory is not searched, and symbolic links are not
// followed.
//
// Outside any git repository, .gitignore applies in a directory that has a
// project file (package.json, go.mod, Makefile and the like), and below it.
//
// The answer has one path per line, newest first. To try it:
//
//	echo '{"pattern":"*.go"}' | mcp-glob
//	mcp-glob --call '{"pattern":"src/**/*.ts","sort":"path"}'
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
	cmd := mcpkit.NewCommand("glob", "Find files by name", source)
	cmd.Instructions = "glob finds files by name pattern, newest first. " +
		"Paths are relative to the first root, or absolute; paths in results can be passed back unchanged. " +
		"Use offset to continue a truncated result."
	var box sandbox.Config
	box.AddFlags(cmd.Flags)
	cmd.Positional, cmd.CheckPositional, cmd.Roots = box.AddRoots, box.CheckRoots, box.ShownRoots
	cmd.Memory = 48 << 20
	var st state.Config // all tools accept its flags; glob keeps no state
	st.AddFlags(cmd.Flags)
	timeout := cmd.Flags.Duration("timeout", defaultTimeout, "return partial results after `TIME`")
	cmd.Tools = func() ([]*mcpkit.Tool, error) {
		if err := errors.Join(box.Validate(), st.Validate()); err != nil {
			return nil, err
		}
		box.ClientRoots, box.Finder = mcpkit.ClientRoots, walk.FindNamed
		tool, err := newTool(sandbox.New(box), *timeout)
		return []*mcpkit.Tool{tool}, err
	}
	os.Exit(cmd.Main())
}
