package mcpkit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
)

// overrunGrace is the time that a tool has after its deadline to return partial
// results.
const overrunGrace = time.Second

// enforceToolTimeout gives each call its tool's Timeout. The call's context
// then ends, and the tool should answer with partial results. If it has not
// answered within grace after that, the call is answered with the error TIMEOUT
// and the tool's later result is dropped.
func enforceToolTimeout(grace time.Duration) Middleware {
	return enforceTimeout(func(t *Tool) time.Duration { return t.Def().Timeout }, grace)
}

// Timeout limits every call of every tool to d, and otherwise works like a
// tool's Timeout. Use it for one attempt inside middleware.Retry, or for tools
// without a Timeout.
func Timeout(d time.Duration) Middleware {
	return enforceTimeout(func(*Tool) time.Duration { return d }, 0)
}

// enforceTimeout ends the context of a call after the timeout of its tool, and
// answers with the error TIMEOUT if the handler has not returned within grace
// after that. A timeout of 0 or less means none.
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
