package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Handler carries out one call of a tool. It always returns a result; args is
// the arguments object as received, or nil.
type Handler func(ctx context.Context, t *Tool, args json.RawMessage) *CallResult

// A Middleware wraps a handler. One instance serves all tools of a server.
type Middleware func(next Handler) Handler

// chain wraps h: the first middleware is the outermost, so it sees a call
// first and its result last.
func chain(h Handler, mw ...Middleware) Handler {
	for _, m := range slices.Backward(mw) {
		h = m(h)
	}
	return h
}

// standard returns the middleware of every server made by this package,
// outermost first:
//
//  1. A panic in the tool or in any middleware is answered with INTERNAL.
//  2. Each call is answered by its tool's Timeout, including the time it waits
//     for its turn. A tool that overruns keeps its turn until it returns.
//  3. At most MaxConcurrent calls of a tool run at once.
//
// A Command's own middleware comes after these, next to the tool.
func standard() []Middleware {
	return []Middleware{recoverPanic, deadline(overrun), concurrency()}
}

// overrun is the time that a tool has after its deadline to return partial
// results.
const overrun = time.Second

// handle is the innermost handler.
func handle(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
	return t.Call(ctx, args)
}

// recoverPanic answers a panic with INTERNAL. The result's Err has the value and
// the stack, for the log; the client does not get them.
func recoverPanic(next Handler) Handler {
	return func(ctx context.Context, t *Tool, args json.RawMessage) (res *CallResult) {
		defer func() {
			if value := recover(); value != nil {
				res = panicResult(t, value)
			}
		}()
		return next(ctx, t, args)
	}
}

func panicResult(t *Tool, value any) *CallResult {
	return t.ErrorResult(toolerr.New(toolerr.Internal, "%w in %s; the server's log has the details",
		&callerror.Panic{Value: value, Stack: debug.Stack()}, t.Name()))
}

// deadline gives each call its tool's Timeout. The tool's context ends then,
// and the tool should answer with partial results. If it has not answered after
// a further overrun, the call is answered with TIMEOUT and the tool's later
// result is dropped.
func deadline(overrun time.Duration) Middleware {
	return runWithin(func(t *Tool) time.Duration { return t.Def().Timeout }, overrun)
}

// Timeout gives every call of every tool at most d, and otherwise works like
// a tool's Timeout: for one attempt inside middleware.Retry, or for tools
// without a Timeout.
func Timeout(d time.Duration) Middleware {
	return runWithin(func(*Tool) time.Duration { return d }, 0)
}

func runWithin(limitOf func(*Tool) time.Duration, overrun time.Duration) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
			limit := limitOf(t)
			if limit <= 0 {
				return next(ctx, t, args)
			}
			ctx, cancel := context.WithTimeout(ctx, limit)
			done := make(chan *CallResult, 1)
			go func() {
				defer cancel()
				done <- recoverPanic(next)(ctx, t, args)
			}()
			patience := time.NewTimer(limit + overrun)
			defer patience.Stop()
			select {
			case res := <-done:
				return res
			case <-patience.C:
				return t.ErrorResult(&callerror.TimeoutError{Tool: t.Name(), After: limit})
			}
		}
	}
}

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
