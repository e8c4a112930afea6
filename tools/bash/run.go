package main

import (
	"context"
	"fmt"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

type meta struct {
	ExitCode   int   `json:"exit_code"`
	DurationMS int64 `json:"duration_ms"`
}

// runs are the commands of a server.
type runs struct {
	runner *proc.Runner
}

func newRuns(c Config) (*runs, error) {
	runner, err := proc.New(proc.Config{Level: c.Level})
	return &runs{runner: runner}, err
}

func (r *runs) close() error { return r.runner.Close() }

func (r *runs) run(ctx context.Context, fs *sandbox.FS, args arguments) (*mcpkit.Result, error) {
	result, output, err := r.runner.Run(ctx, proc.Command{
		Script: args.Command, Dir: fs.Roots()[0].Path, Rules: fs, Timeout: time.Duration(args.Timeout) * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	defer output.Close()
	text := fmt.Sprintf("%sexit %d · %.1fs\n", output.Excerpt(0).Text(), result.ExitCode, result.Duration.Seconds())
	return &mcpkit.Result{Text: text, Meta: meta{result.ExitCode, result.Duration.Milliseconds()}}, nil
}
