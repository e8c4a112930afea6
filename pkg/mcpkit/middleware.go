package mcpkit

import (
	"context"
	"encoding/json"
	"slices"
)

// A Handler carries out one call of a tool. It always returns a result; args is
// the arguments object as received, or nil.
type Handler func(ctx context.Context, t *Tool, args json.RawMessage) *CallResult

// A Middleware wraps a handler. One instance serves all tools of a server.
type Middleware func(next Handler) Handler

// chain wraps h: the first middleware is the outermost, so it sees a call
// first and its result last.
func wrapHandler(h Handler, mw ...Middleware) Handler {
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
func standardMiddleware() []Middleware {
	return []Middleware{recoverPanic, enforceToolTimeout(overrunGrace), limitConcurrency()}
}

// handle is the innermost handler.
func toolHandler(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
	return t.Call(ctx, args)
}
