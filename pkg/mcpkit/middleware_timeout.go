package mcpkit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
)

// overrun is the time that a tool has after its deadline to return partial
// results.
const overrunGrace = time.Second

// deadline gives each call its tool's Timeout. The tool's context ends then,
// and the tool should answer with partial results. If it has not answered after
// a further overrun, the call is answered with TIMEOUT and the tool's later
// result is dropped.
func enforceToolTimeout(grace time.Duration) Middleware {
	return enforceTimeout(func(t *Tool) time.Duration { return t.Def().Timeout }, grace)
}

// Timeout gives every call of every tool at most d, and otherwise works like
// a tool's Timeout: for one attempt inside middleware.Retry, or for tools
// without a Timeout.
func Timeout(d time.Duration) Middleware {
	return enforceTimeout(func(*Tool) time.Duration { return d }, 0)
}

func enforceTimeout(timeoutOf func(*Tool) time.Duration, grace time.Duration) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
			timeout := timeoutOf(t)
			if timeout <= 0 {
				return next(ctx, t, args)
			}
			ctx, cancel := context.WithTimeout(ctx, timeout)
			done := make(chan *CallResult, 1)
			go func() {
				defer cancel()
				done <- recoverPanic(next)(ctx, t, args)
			}()
			timer := time.NewTimer(timeout + grace)
			defer timer.Stop()
			select {
			case res := <-done:
				return res
			case <-timer.C:
				return t.ErrorResult(&callerror.TimeoutError{Tool: t.Name(), After: timeout})
			}
		}
	}
}
