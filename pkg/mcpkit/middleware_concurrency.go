package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// concurrency limits the running calls of each tool to its MaxConcurrent; other
// calls wait in order.
func concurrency() Middleware {
	var turns sync.Map // *Tool → chan struct{}
	return func(next Handler) Handler {
		return func(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
			limit := t.Def().MaxConcurrent
			if limit <= 0 {
				return next(ctx, t, args)
			}
			made, ok := turns.Load(t)
			if !ok {
				made, _ = turns.LoadOrStore(t, make(chan struct{}, limit))
			}
			turn := made.(chan struct{})
			select {
			case turn <- struct{}{}:
			case <-ctx.Done():
				return t.ErrorResult(waitError(ctx, t))
			}
			defer func() { <-turn }()
			return next(ctx, t, args)
		}
	}
}

func waitError(ctx context.Context, t *Tool) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return toolerr.New(toolerr.Timeout, "%s is busy: the call could not start before its deadline; try again later", t.Name())
	}
	return toolerr.New(toolerr.Cancelled, "%s was cancelled before it began", t.Name())
}
