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

// A runner carries out calls of a set of tools.
type runner struct {
	tools     *registry
	handler   Handler
	maxTokens int // for every tool; 0: each tool's Def.MaxTokens
}

// run carries out one call and logs a panic of the tool.
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

// structuredTools returns the tools in the variant that answers with
// structuredContent.
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

// runner returns the runner that carries out calls for this command.
func (c *Command) newRunner(tools *registry) *runner {
	return &runner{
		tools:     tools,
		handler:   wrapHandler(toolHandler, append(standardMiddleware(), c.Middleware...)...),
		maxTokens: int(c.common.maxTokens),
	}
}
