// Kit is an MCP server written with pkg/mcpkit. The benchmarks compare it with one
// written with plain mcp-go, and use it as upstream. It has the tools echo, sleep and
// blob, and N more with -filler N.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"time"

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

type sleepArgs struct {
	MS int `json:"ms" jsonschema:"how long"`
}

func sleep(_ context.Context, args sleepArgs) (*mcpkit.Result, error) {
	time.Sleep(time.Duration(args.MS) * time.Millisecond)
	return &mcpkit.Result{Text: "slept"}, nil
}

type blobArgs struct {
	Bytes int `json:"bytes" jsonschema:"how many, as they are sent"`
}

// blobLine has as many quotes and line ends as source files.
const blobLine = "\tname, err := reader.ReadString(\"and this is the rest of it\") // 64\n"

func blob(_ context.Context, args blobArgs) (*mcpkit.Result, error) {
	const sent = len(blobLine) + 4 // escaped: two quotes, a tab, a line end
	text := strings.Repeat(blobLine, args.Bytes/sent)
	return &mcpkit.Result{Text: text + strings.Repeat("x", args.Bytes%sent)}, nil
}

func tools(filler int) ([]*mcpkit.Tool, error) {
	hints := mcpkit.Hints{ReadOnly: true, Idempotent: true}
	sleeper, err := mcpkit.NewTool(mcpkit.Def{Name: "sleep", Title: "Sleep", Description: "Takes its time.", Hints: hints}, sleep)
	if err != nil {
		return nil, err
	}
	sender, err := mcpkit.NewTool(mcpkit.Def{Name: "blob", Title: "Blob", Description: "Sends much.", Hints: hints, MaxTokens: 1 << 20}, blob)
	if err != nil {
		return nil, err
	}
	all := []*mcpkit.Tool{sleeper, sender}
	names := []string{"echo"}
	for i := range filler {
		names = append(names, fmt.Sprintf("filler_%d", i))
	}
	for _, name := range names {
		tool, err := mcpkit.NewTool(mcpkit.Def{Name: name, Title: "Echo", Description: "Returns its text.", Hints: hints}, echo)
		if err != nil {
			return nil, err
		}
		all = append(all, tool)
	}
	return all, nil
}

func main() {
	cmd := mcpkit.NewCommand("echo", "Echo", source)
	// The host starts its tools with a root and a state directory.
	cmd.Flags.Func("root", "ignored", func(string) error { return nil })
	cmd.Flags.String("state", "", "ignored")
	filler := cmd.Flags.Int("filler", 0, "so many more tools")
	cmd.Tools = func() ([]*mcpkit.Tool, error) { return tools(*filler) }
	os.Exit(cmd.Main())
}
