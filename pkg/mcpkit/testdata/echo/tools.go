package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

type echoArgs struct {
	Text string `json:"text" jsonschema:"what to say" alias:"say"`
	Fail bool   `json:"fail,omitempty" jsonschema:"answer an error instead"`
}

type noArgs struct{}

type meta struct {
	Bytes int `json:"bytes" jsonschema:"length of the text"`
}

type row struct {
	Word string `json:"word"`
}

// tools makes the tools; dirs holds the plain arguments.
func tools(dirs *[]string) ([]*mcpkit.Tool, error) {
	readOnly := mcpkit.Hints{ReadOnly: true, Idempotent: true}
	echo, err1 := mcpkit.NewTool(mcpkit.Def{
		Name: "echo", Title: "Echo", Description: "Says text again. <b>&</b>", Hints: readOnly, Aliases: []string{"Echo", "Say"}, Output: meta{},
	}, func(_ context.Context, args echoArgs) (*mcpkit.Result, error) {
		if args.Fail {
			return nil, toolerr.New(toolerr.NotFound, "nothing called %q", args.Text)
		}
		var rows []row
		for _, w := range strings.Fields(args.Text) {
			rows = append(rows, row{w})
		}
		return &mcpkit.Result{Text: args.Text, Meta: meta{len(args.Text)}, Rows: rows}, nil
	})
	text := func(d mcpkit.Def, fn func(ctx context.Context) (string, error)) (*mcpkit.Tool, error) {
		d.Title, d.Description, d.Hints = d.Name, "For tests.", readOnly
		return mcpkit.NewTool(d, func(ctx context.Context, _ noArgs) (*mcpkit.Result, error) {
			said, err := fn(ctx)
			if err != nil {
				return nil, err
			}
			return &mcpkit.Result{Text: said}, nil
		})
	}
	panics, err2 := text(mcpkit.Def{Name: "panic"}, func(context.Context) (string, error) { panic("secret state") })
	sleep, err3 := text(mcpkit.Def{Name: "sleep"}, func(ctx context.Context) (string, error) {
		select {
		case <-time.After(time.Hour):
		case <-ctx.Done():
		}
		return "", context.Cause(ctx)
	})
	overdue, err4 := text(mcpkit.Def{Name: "overdue", Timeout: 20 * time.Millisecond}, func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "found so far: 3", nil
	})
	roots, err5 := text(mcpkit.Def{Name: "roots"}, func(ctx context.Context) (string, error) {
		paths, err := mcpkit.ClientRoots(ctx)
		return fmt.Sprintf("%q %q budget %d", paths, *dirs, mcpkit.Budget(ctx)), err
	})
	child, err6 := text(mcpkit.Def{Name: "child"}, runChild)
	return []*mcpkit.Tool{echo, panics, sleep, overdue, roots, child}, errors.Join(err1, err2, err3, err4, err5, err6)
}

// runChild starts this program as a sleeping child, which outlives a server
// that does not kill it.
func runChild(ctx context.Context) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, self, nap)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "child", cmd.Process.Pid)
	err = cmd.Wait()
	return "", fmt.Errorf("the child ended: %w", err)
}
