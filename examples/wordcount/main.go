// Mcp-wordcount counts words: a whole MCP server of one's own.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

//go:embed main.go
var source string

type args struct {
	Text string `json:"text" jsonschema:"the text to count in"`
}

func main() {
	tool, err := mcpkit.NewTool(mcpkit.Def{Name: "wordcount", Title: "Count words", Description: "Counts the words of a text.",
		Hints: mcpkit.Hints{ReadOnly: true, Idempotent: true}}, func(_ context.Context, a args) (*mcpkit.Result, error) {
		return &mcpkit.Result{Text: fmt.Sprintf("%d words", len(strings.Fields(a.Text)))}, nil
	})
	cmd := mcpkit.NewCommand("wordcount", "Word count", source)
	cmd.Tools = func() ([]*mcpkit.Tool, error) { return []*mcpkit.Tool{tool}, err }
	os.Exit(cmd.Main())
}
