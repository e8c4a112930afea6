package mcpkit_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A complete third-party tool. In a program, main ends with os.Exit(cmd.Main())
// and passes its own source, embedded, as the manual.
func Example() {
	type args struct {
		Text  string `json:"text" jsonschema:"the text to count in"`
		Word  string `json:"word" jsonschema:"the word to count" alias:"needle"`
		Limit int    `json:"limit,omitempty" jsonschema:"stop counting here" default:"100" min:"1"`
	}
	count, err := mcpkit.NewTool(mcpkit.Def{
		Name: "count_words", Title: "Count words", Description: "Counts how often a word stands in a text.",
		Hints: mcpkit.Hints{ReadOnly: true, Idempotent: true},
	}, func(ctx context.Context, a args) (*mcpkit.Result, error) {
		n := strings.Count(a.Text, a.Word)
		if n == 0 {
			return nil, toolerr.New(toolerr.NoMatch, "%q is not in the text; try a part of it", a.Word)
		}
		return &mcpkit.Result{Text: fmt.Sprintf("%d of %q", min(n, a.Limit), a.Word)}, nil
	})
	if err != nil {
		panic(err)
	}
	cmd := mcpkit.NewCommand("count", "Count", "")
	cmd.Tools = func() ([]*mcpkit.Tool, error) { return []*mcpkit.Tool{count}, nil }

	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count_words","arguments":{"text":"a b a","word":"a"}}}`)
	cmd.Run(context.Background(), nil, in, os.Stdout, os.Stderr)
	cmd.Run(context.Background(), nil, strings.NewReader(`{"text":"a b a","word":"c"}`), os.Stdout, os.Stderr)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"2 of \"a\""}]}}
	// {"error":"\"c\" is not in the text; try a part of it","code":"NO_MATCH"}
}
