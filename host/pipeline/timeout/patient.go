package timeout

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/call"
)

// patient carries out a call whose client may be asked, with a clock that
// stands still meanwhile.
func patient(ctx context.Context, next call.Handler, req *call.Request, after time.Duration) (*call.Result, error) {
	late := &call.TimeoutError{Tool: req.Tool.Name, After: after}
	timed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &clock{left: after, since: time.Now()}
	c.timer = time.AfterFunc(after, func() { cancel(late) })
	defer c.timer.Stop()
	asking := *req
	asking.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		c.stop()
		defer c.start()
		return req.Ask(ctx, method, params)
	}
	res, err := next(timed, &asking)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) && context.Cause(timed) == late {
		return nil, late
	}
	return res, err
}

// clock is the time a call has left.
type clock struct {
	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration
	since time.Time // when it was started last
	open  int       // questions
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open++; c.open == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

// start lets it go on. A call whose time ended at the moment of the question
// has ended.
func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 {
		c.since = time.Now()
		c.timer.Reset(max(c.left, time.Millisecond))
	}
}
