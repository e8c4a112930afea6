package gateway

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxAsked is how many questions one client may have before it at once. Calls
// that wait for an answer hold a place with their server and memory here, but
// none in any queue, so nothing else bounds them.
const maxAsked = 32

// asking counts the questions that clients have not answered.
type asking struct {
	mu   sync.Mutex
	open map[string]int // by client
}

// enter makes room for a question to a client.
func (a *asking) enter(client string) (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[client] >= maxAsked {
		return nil, toolerr.New(toolerr.LimitReached, "%d questions wait for the client's answers; the client must answer some first", maxAsked)
	}
	if a.open == nil {
		a.open = map[string]int{}
	}
	a.open[client]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.open[client]--; a.open[client] == 0 {
			delete(a.open, client)
		}
	}, nil
}

// bounded counts the questions of a call to its client.
func (a *asking) bounded(client string, ask call.Ask) call.Ask {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		leave, err := a.enter(client)
		if err != nil {
			return nil, err
		}
		defer leave()
		return ask(ctx, method, params)
	}
}
