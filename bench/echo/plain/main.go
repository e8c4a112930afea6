// Plain is an MCP server with one tool, echo, written directly on mcp-go: what
// pkg/mcpkit is compared with. With an address as argument it serves
// streamable HTTP on /mcp, else its standard input.
package main

import (
	"context"
	"fmt"
	"os"

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
	s.AddTool(mcp.NewTool("echo", mcp.WithDescription("Answers what it is told."), mcp.WithString("text", mcp.Required())),
		func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(request.GetString("text", "")), nil
		})
	if len(os.Args) > 1 {
		return server.NewStreamableHTTPServer(s).Start(os.Args[1])
	}
	return server.ServeStdio(s)
}
