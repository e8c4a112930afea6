package gateway

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxOpenQuestions bounds the open questions of one client. Calls that wait for an
// answer occupy a place at their server and memory here, but no place in a queue, so
// no other limit bounds them.
const maxOpenQuestions = 32

// questionLimit counts the open questions of each client.
type questionLimit struct {
	mu   sync.Mutex
	open map[string]int // by client
}

// acquire counts a question to a client until leave is called. It returns an error if the
// client has maxOpenQuestions open ones.
func (a *questionLimit) acquire(client string) (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[client] >= maxOpenQuestions {
		return nil, toolerr.New(toolerr.LimitReached, "%d questions wait for the client's answers; the client must answer some first", maxOpenQuestions)
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

// wrapAsk returns ask with the limit of the client: a question beyond it is an error.
func (a *questionLimit) wrapAsk(client string, ask call.Ask) call.Ask {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		leave, err := a.acquire(client)
		if err != nil {
			return nil, err
		}
		defer leave()
		return ask(ctx, method, params)
	}
}
