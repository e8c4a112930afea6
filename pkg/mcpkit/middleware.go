package mcpkit

import (
	"context"
	"encoding/json"
	"slices"
)

// A Handler runs one call of a tool and returns its result, never nil; a
// failure is a result with IsError. args is the arguments object as received,
// or nil.
type Handler func(ctx context.Context, t *Tool, args json.RawMessage) *CallResult

// A Middleware returns a handler that wraps next. One instance serves all tools
// of a server.
type Middleware func(next Handler) Handler

// wrapHandler wraps h in mw. The first middleware is the outermost: it gets a
// call first and its result last.
func wrapHandler(h Handler, mw ...Middleware) Handler {
	for _, m := range slices.Backward(mw) {
		h = m(h)
	}
	return h
}

// standardMiddleware returns the middleware of every server made by this
// package, outermost first:
//
//  1. A panic in the tool or in other middleware is answered with INTERNAL.
//  2. Each call is answered within its tool's Timeout, including the time that it waits to start. A tool that overruns counts as running until it returns.
//  3. At most MaxConcurrent calls of a tool run at once.
//
// A Command's own middleware comes after these, next to the tool.
func standardMiddleware() []Middleware {
	return []Middleware{recoverPanic, enforceToolTimeout(overrunGrace), limitConcurrency()}
}

// toolHandler is the innermost handler: it calls the tool.
func toolHandler(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
	return t.Call(ctx, args)
}
