// Kit is an MCP server with one tool, echo, written on pkg/mcpkit: what is
// measured beside plain mcp-go, and the benchmarks' upstream.
package main

import (
	"context"
	_ "embed"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

//go:embed main.go
var source string

type echoArgs struct {
	Text string `json:"text" jsonschema:"what to say"`
}

func echo(_ context.Context, args echoArgs) (*mcpkit.Result, error) {
	return &mcpkit.Result{Text: args.Text}, nil
}

func main() {
	cmd := mcpkit.NewCommand("echo", "Echo", source)
	// The host starts its tools with a root and a state directory.
	cmd.Flags.Func("root", "ignored", func(string) error { return nil })
	cmd.Flags.String("state", "", "ignored")
	cmd.Tools = func() ([]*mcpkit.Tool, error) {
		tool, err := mcpkit.NewTool(mcpkit.Def{
			Name: "echo", Title: "Echo", Description: "Answers what it is told.",
			Hints: mcpkit.Hints{ReadOnly: true, Idempotent: true},
		}, echo)
		return []*mcpkit.Tool{tool}, err
	}
	os.Exit(cmd.Main())
}
