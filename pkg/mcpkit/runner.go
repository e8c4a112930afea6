package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// A runner runs calls of a set of tools.
type runner struct {
	tools     *registry
	handler   Handler // all middleware around the tool
	maxTokens int     // result budget of every tool; 0: each tool's Def.MaxTokens
}

// run runs one call and returns its result, never nil. It logs a panic of the
// tool.
func (r *runner) run(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
	tokens := r.maxTokens
	if tokens == 0 {
		tokens = t.Def().MaxTokens
	}
	res := r.handler(wire.WithBudget(ctx, tokens), t, args)
	var p *callerror.Panic
	if errors.As(res.Err, &p) {
		slog.Error(fmt.Sprintf("panic in %s: %v\n%s", t.Name(), p.Value, p.Stack))
	}
	return res
}

// structuredTools returns each tool as Tool.Structured returns it.
func structuredTools(tools []*Tool) ([]*Tool, error) {
	out := make([]*Tool, len(tools))
	for i, t := range tools {
		var err error
		if out[i], err = t.Structured(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// newRunner returns the runner for this command's calls.
func (c *Command) newRunner(tools *registry) *runner {
	return &runner{
		tools:     tools,
		handler:   wrapHandler(toolHandler, append(standardMiddleware(), c.Middleware...)...),
		maxTokens: int(c.common.maxTokens),
	}
}
