package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// limitConcurrency lets at most MaxConcurrent calls of a tool run, any number
// if that is 0; other calls wait in order. A call whose ctx ends while it waits
// is not run: its result is the error TIMEOUT or CANCELLED.
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

// notStartedError returns the error of a call whose ctx ended before it could
// start: TIMEOUT or CANCELLED.
func notStartedError(ctx context.Context, t *Tool) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return toolerr.New(toolerr.Timeout, "%s is busy: the call could not start before its deadline; try again later", t.Name())
	}
	return toolerr.New(toolerr.Cancelled, "%s was cancelled before it began", t.Name())
}
