// Mcp-bash is an MCP server with two tools: bash runs shell commands in a sandbox
// of the kernel, and bash_job manages commands that run in the background.
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
// Commands can write in the roots and in a private temporary directory. They
// cannot read credential stores, and have no network unless --net opens it. The
// server tests what this machine enforces, and prints it in each answer and with
// --doctor. If the machine enforces nothing, commands are refused unless
// --sandbox off is set. When a command ends, all processes that it started end;
// when the server ends, its jobs end.
//
// Limits: commands can be confined on Linux and, untested, on macOS; on Windows
// --sandbox restricted confines neither files nor the network. Exported
// variables whose name or value looks like a secret are not kept for the next
// command.
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
