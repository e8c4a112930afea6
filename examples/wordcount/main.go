// Mcp-wordcount is a complete MCP server with one tool.
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

type args struct {
	Text string `json:"text" jsonschema:"the text to count in"`
}

func main() {
	mcpkit.Main("wordcount", mcpkit.Must(mcpkit.NewTool(mcpkit.Def{
		Name: "wordcount", Title: "Count words", Description: "Counts the words of a text.",
		Hints: mcpkit.Hints{ReadOnly: true, Idempotent: true},
	}, count)))
}

func count(_ context.Context, a args) (*mcpkit.Result, error) {
	return &mcpkit.Result{Text: fmt.Sprintf("%d words", len(strings.Fields(a.Text)))}, nil
}
