// Server is a small MCP server for the tests of mcpkittest.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

//go:embed main.go
var source string

type echoArgs struct {
	Text   string `json:"text" jsonschema:"what to say"`
	Times  int    `json:"times,omitempty" default:"1" min:"1" max:"9"`
	Stderr bool   `json:"stderr,omitempty"`
	Image  bool   `json:"image,omitempty"`
}

type echoMeta struct {
	Lines int `json:"lines"`
}

func echo(_ context.Context, a echoArgs) (*mcpkit.Result, error) {
	if a.Stderr {
		fmt.Fprintln(os.Stderr, "said on stderr")
	}
	res := &mcpkit.Result{Text: strings.Repeat(a.Text+"\n", a.Times), Meta: echoMeta{a.Times}}
	if a.Image {
		res.Images = []mcpkit.Image{{Data: []byte("x"), MIME: "image/png"}}
	}
	return res, nil
}

type readArgs struct {
	Path string `json:"path"`
}

func read(ctx context.Context, a readArgs) (*mcpkit.Result, error) {
	mcpkit.Progress(ctx, 1, 2, "reading")
	data, err := os.ReadFile(a.Path)
	if err != nil {
		full, _ := filepath.Abs(a.Path) // the working directory exists
		return nil, toolerr.New(toolerr.NotFound, "%s is not there; see $HOME or %s", a.Path, full)
	}
	return &mcpkit.Result{Text: string(data)}, nil
}

func roots(ctx context.Context, _ struct{}) (*mcpkit.Result, error) {
	list, err := mcpkit.ClientRoots(ctx)
	return &mcpkit.Result{Text: strings.Join(list, "\n")}, err
}

func main() {
	cmd := mcpkit.NewCommand("echo", "Echo", source)
	cmd.Tools = func() ([]*mcpkit.Tool, error) {
		a, err := mcpkit.NewTool(mcpkit.Def{Name: "echo", Title: "Echo", Output: echoMeta{}}, echo)
		if err != nil {
			return nil, err
		}
		b, err := mcpkit.NewTool(mcpkit.Def{Name: "read", Title: "Read"}, read)
		if err != nil {
			return nil, err
		}
		c, err := mcpkit.NewTool(mcpkit.Def{Name: "roots", Title: "Roots"}, roots)
		return []*mcpkit.Tool{a, b, c}, err
	}
	os.Exit(cmd.Main())
}
