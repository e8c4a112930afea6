package limit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// releaseDuringQuestions returns the request with an Ask that releases the permit while
// the client is asked: a user who takes time to answer must not block other calls. After
// the answer the call continues at once, so that for a moment one call more than permitted
// can run.
func (h permit) releaseDuringQuestions(l *Limiter, req *call.Request) *call.Request {
	if req.Ask == nil {
		return req
	}
	open := 0 // unanswered questions; protected by l.mu
	releasing := *req
	releasing.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		l.mu.Lock()
		if open++; open == 1 {
			h.p.takeBack(h.c, time.Now())
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
	return &releasing
}
