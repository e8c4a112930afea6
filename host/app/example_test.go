package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/app"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

type repeatArgs struct {
	Text string `json:"text" jsonschema:"the text to repeat"`
	N    int    `json:"n,omitempty" default:"2" min:"1" max:"5"`
}

// newRepeat returns a tool that is a function of this program.
func newRepeat() *mcpkit.Tool {
	tool, err := mcpkit.NewTool(mcpkit.Def{
		Name: "repeat", Description: "Repeats a text.", Hints: mcpkit.Hints{ReadOnly: true, Idempotent: true},
	}, func(_ context.Context, a repeatArgs) (*mcpkit.Result, error) {
		if a.Text == "" {
			return nil, toolerr.New(toolerr.InvalidInput, "text is empty")
		}
		return &mcpkit.Result{Text: strings.Repeat(a.Text, a.N)}, nil
	})
	if err != nil {
		panic(err)
	}
	return tool
}

// A host with a function of the program as a tool. Options.ConfigFile would add the servers of
// a configuration, Options.ToolDir the bundled tools.
func ExampleOpen() {
	host, err := app.Open(app.Options{})
	if err != nil {
		panic(err)
	}
	defer host.Close()
	if err := host.Register(newRepeat()); err != nil {
		panic(err)
	}
	tools, err := host.Tools(context.Background())
	for _, tool := range tools {
		fmt.Printf("%s of server %s: %s\n", tool.Name, tool.Server, tool.Description)
	}
	fmt.Println(err)
	// Output:
	// repeat of server custom: Repeats a text.
	// <nil>
}

// A call returns the tool's answer, or an error with a code.
func ExampleHost_Call() {
	host, err := app.Open(app.Options{})
	if err != nil {
		panic(err)
	}
	defer host.Close()
	if err := host.Register(newRepeat()); err != nil {
		panic(err)
	}
	ctx := context.Background()

	answer, err := host.Call(ctx, "repeat", map[string]any{"text": "ab", "n": 3})
	fmt.Println(answer.Text, err)

	// The tool reports an error.
	_, err = host.Call(ctx, "repeat", map[string]any{"text": ""})
	var failed *app.FailedError
	fmt.Println(errors.As(err, &failed), toolerr.CodeOf(err), err)

	// The host refuses the call: the tool does not run.
	_, err = host.Call(ctx, "repeat", repeatArgs{Text: "ab", N: 9})
	fmt.Println(toolerr.CodeOf(err), errors.Is(err, toolerr.ErrInvalidArguments))
	_, err = host.Call(ctx, "gone", nil)
	fmt.Println(toolerr.CodeOf(err))
	// Output:
	// ababab <nil>
	// true INVALID_INPUT text is empty
	// INVALID_PARAMS true
	// TOOL_NOT_FOUND
}

// One MCP client on standard input and output, as the program of its configuration.
func ExampleHost_ServeStdio() {
	host, err := app.Open(app.Options{})
	if err != nil {
		panic(err)
	}
	defer host.Close()
	if err := host.Register(newRepeat()); err != nil {
		panic(err)
	}
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"example","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"repeat","arguments":{"text":"ab"}}}
`)
	var out bytes.Buffer // a program passes os.Stdin and os.Stdout
	if err := host.ServeStdio(context.Background(), in, &out); err != nil {
		panic(err)
	}
	for line := range strings.Lines(out.String()) {
		var message struct {
			ID     int
			Result struct {
				Content []struct{ Text string }
			}
		}
		if json.Unmarshal([]byte(line), &message) == nil && message.ID == 2 {
			fmt.Println(message.Result.Content[0].Text)
		}
	}
	// Output: abab
}

// MCP clients over HTTP, at http://ADDRESS/mcp with the token.
func ExampleHost_ServeHTTP() {
	host, err := app.Open(app.Options{})
	if err != nil {
		panic(err)
	}
	defer host.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- host.ServeHTTP(ctx, listener, app.HTTPOptions{Token: "secret"}) }()

	res, err := http.Get("http://" + listener.Addr().String() + "/healthz")
	if err != nil {
		panic(err)
	}
	io.Copy(io.Discard, res.Body) //nolint:errcheck // an example
	res.Body.Close()              //nolint:errcheck // an example
	fmt.Println(res.Status)
	stop()
	fmt.Println(<-served)
	// Output:
	// 200 OK
	// <nil>
}

// The tools of a server under other names and with other descriptions.
func ExampleHost_Session() {
	host, err := app.Open(app.Options{ConfigFile: os.Getenv("EXAMPLE_CONFIG")})
	if err != nil {
		panic(err)
	}
	defer host.Close()
	if err := host.Register(newRepeat()); err != nil {
		panic(err)
	}
	ctx := context.Background()
	tools, err := mcpkit.Import(ctx, host.Session("custom"), func(o *mcpkit.ToolOverride) bool {
		o.Name, o.Description = "echo_twice", "Writes a text twice."
		return true // false leaves the tool out
	})
	if err != nil {
		panic(err)
	}
	if err := host.Register(tools...); err != nil {
		panic(err)
	}
	answer, err := host.Call(ctx, "echo_twice", map[string]any{"text": "ab"})
	fmt.Println(answer.Text, err)
	// Output: abab <nil>
}
