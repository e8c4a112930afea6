package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A host as a library: tools that are functions of the program, called through
// the same stages as those of servers, which cfg would name; config.Load reads
// it from files.
func ExampleOpen() {
	type args struct {
		Text string `json:"text" jsonschema:"what to repeat"`
		N    int    `json:"n,omitempty" default:"2" min:"1" max:"5"`
	}
	repeat, err := mcpkit.NewTool(mcpkit.Def{
		Name: "repeat", Description: "Repeats a text.", Hints: mcpkit.Hints{ReadOnly: true, Idempotent: true},
	}, func(_ context.Context, a args) (*mcpkit.Result, error) {
		if a.Text == "" {
			return nil, toolerr.New(toolerr.InvalidInput, "there is nothing to repeat")
		}
		return &mcpkit.Result{Text: strings.Repeat(a.Text, a.N)}, nil
	})
	if err != nil {
		panic(err)
	}

	host, err := core.Open(config.Config{})
	if err != nil {
		panic(err)
	}
	defer host.Close()
	if err := host.Register(repeat); err != nil {
		panic(err)
	}

	ctx := context.Background()
	for _, t := range host.List(ctx) {
		fmt.Println(t.Name, "of server", t.Server)
	}
	answer, err := host.Call(ctx, "repeat", map[string]any{"text": "ab", "n": 3})
	fmt.Println(answer.Text, err)

	_, err = host.Call(ctx, "repeat", args{N: 9})
	fmt.Println(toolerr.CodeOf(err), errors.Is(err, toolerr.ErrInvalidArguments))
	_, err = host.Call(ctx, "gone", nil)
	fmt.Println(toolerr.CodeOf(err))
	// Output:
	// repeat of server custom
	// ababab <nil>
	// INVALID_PARAMS true
	// TOOL_NOT_FOUND
}
