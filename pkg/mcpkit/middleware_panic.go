package mcpkit

import (
	"context"
	"encoding/json"
	"runtime/debug"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// recoverPanic answers a panic with the error INTERNAL. The result's Err has
// the value and the stack, for the log; the client does not get them.
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

// panicResult returns the result of a call that panicked with value. Call it in
// the deferred function that recovered, for its stack.
func panicResult(t *Tool, value any) *CallResult {
	return t.ErrorResult(toolerr.New(toolerr.Internal, "%w in %s; the server's log has the details",
		&callerror.Panic{Value: value, Stack: debug.Stack()}, t.Name()))
}
