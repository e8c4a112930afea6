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
func limitConcurrency() Middleware {
	var slotsOf sync.Map // *Tool → chan struct{}
	return func(next Handler) Handler {
		return func(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
			limit := t.Def().MaxConcurrent
			if limit <= 0 {
				return next(ctx, t, args)
			}
			value, ok := slotsOf.Load(t)
			if !ok {
				value, _ = slotsOf.LoadOrStore(t, make(chan struct{}, limit))
			}
			slots := value.(chan struct{})
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return t.ErrorResult(notStartedError(ctx, t))
			}
			defer func() { <-slots }()
			return next(ctx, t, args)
		}
	}
}

func notStartedError(ctx context.Context, t *Tool) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return toolerr.New(toolerr.Timeout, "%s is busy: the call could not start before its deadline; try again later", t.Name())
	}
	return toolerr.New(toolerr.Cancelled, "%s was cancelled before it began", t.Name())
}
