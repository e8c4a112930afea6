// Plain is an MCP server with the tools echo and blob, written directly with mcp-go,
// for comparison with pkg/mcpkit. With an address as argument it serves streamable
// HTTP at /mcp, else standard input. With --filler=N it has N more tools.
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
	addBlob(s)
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
	s.AddTool(mcp.NewTool(name, mcp.WithDescription("Returns its text."), mcp.WithString("text", mcp.Required())),
		func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(request.GetString("text", "")), nil
		})
}

// blobLine has as many quotes and line ends as source files.
const blobLine = "\tname, err := reader.ReadString(\"and this is the rest of it\") // 64\n"

// addBlob adds a tool that returns a given number of bytes.
func addBlob(s *server.MCPServer) {
	s.AddTool(mcp.NewTool("blob", mcp.WithDescription("Sends much."), mcp.WithNumber("bytes", mcp.Required())),
		func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			const sent = len(blobLine) + 4 // escaped: two quotes, a tab, a line end
			n := request.GetInt("bytes", 0)
			return mcp.NewToolResultText(strings.Repeat(blobLine, n/sent) + strings.Repeat("x", n%sent)), nil
		})
}
