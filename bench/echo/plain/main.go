// Plain is an MCP server with one tool, echo, written directly on mcp-go: what
// pkg/mcpkit is compared with. With an address as argument it serves
// streamable HTTP on /mcp, else its standard input; with --filler=N it has so
// many more tools.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
}

func run() error {
	s := server.NewMCPServer("plain", "1", server.WithToolCapabilities(false))
	addEcho(s, "echo")
	if len(os.Args) > 1 {
		more, ok := strings.CutPrefix(os.Args[1], "--filler=")
		if !ok {
			return server.NewStreamableHTTPServer(s).Start(os.Args[1])
		}
		n, err := strconv.Atoi(more)
		if err != nil {
			return err
		}
		for i := range n {
			addEcho(s, fmt.Sprintf("filler_%d", i))
		}
	}
	return server.ServeStdio(s)
}

func addEcho(s *server.MCPServer, name string) {
	s.AddTool(mcp.NewTool(name, mcp.WithDescription("Answers what it is told."), mcp.WithString("text", mcp.Required())),
		func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(request.GetString("text", "")), nil
		})
}
