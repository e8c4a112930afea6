// Mcp-host finds MCP tool servers, starts each when it is first needed, and
// serves them all as one, over stdio and over HTTP. Run mcp-host --help.
package main

import (
	"os"

	"github.com/toolroom-mcp/toolroom/host/internal/cli"
)

func main() {
	os.Exit(cli.Main())
}
