package limit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// passOn returns the request of a permit's holder with an Ask that gives the
// permit back while the client is asked: a user who thinks, or has gone home,
// must not keep other calls from running. Afterwards the call goes on at once,
// for a moment one more than there are permits.
func (h permit) passOn(l *Limiter, req *call.Request) *call.Request {
	if req.Ask == nil {
		return req
	}
	open := 0 // questions, under l.mu
	lent := *req
	lent.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		l.mu.Lock()
		if open++; open == 1 {
			h.p.give(h.c, time.Now())
		}
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			if open--; open == 0 {
				h.p.take(h.c)
			}
			l.mu.Unlock()
		}()
		return req.Ask(ctx, method, params)
	}
	return &lent
}
