package timeout

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// callWithPauses makes a call with a time limit whose clock is paused while the user is
// asked a question. After that time it returns a *call.TimeoutError.
func callWithPauses(ctx context.Context, next call.Handler, req *call.Request, after time.Duration) (*call.Result, error) {
	late := &call.TimeoutError{Tool: req.Tool.Name, After: after}
	timed, cancel := call.WithTimeout(ctx, after, late)
	defer cancel()
	asking := *req
	if req.Ask != nil {
		asking.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			defer call.PauseClocks(timed)() // the context of the server's question need not descend from the call's
			return req.Ask(ctx, method, params)
		}
	}
	res, err := next(timed, &asking)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) && context.Cause(timed) == late {
		return nil, late
	}
	return res, err
}
