// Mcp-bash is an MCP server with two tools: bash runs shell commands, confined
// by the kernel, and bash_job looks after those that go on in the background.
//
//	mcp-bash [DIR…] [flags]
//
// It serves the Model Context Protocol on standard input and output. Without
// a DIR or --root the roots come from MCP_ROOT, CLAUDE_PROJECT_DIR, the
// client, or the working directory. To try it:
//
//	echo '{"command":"make test"}' | mcp-bash
//	mcp-bash --doctor
//
// Commands write in the roots and in a temporary directory of their own,
// cannot read credential stores, and have no network unless --net opens it.
// What of that this machine enforces is found by trying, said in each answer
// and by --doctor; where nothing can be enforced no command runs, unless
// --sandbox off says so. Whatever a command starts ends with it, and jobs end
// with the server.
//
// Bugs: commands run on Linux only, as yet. What was exported with a name or a
// value that looks like a secret is not kept for the next command.
package main

import (
	_ "embed"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

//go:embed main.go
var source string

func main() {
	proc.Init()
	os.Exit(run())
}
