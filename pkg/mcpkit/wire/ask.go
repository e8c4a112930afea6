package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// outgoingRequests holds the requests sent to the client that await a response.
type outgoingRequests struct {
	mu      sync.Mutex
	lastID  int
	pending map[string]chan jsonrpc.Message // by id
	closed  bool                            // set once the input has ended: no response can arrive
}

// ask sends the client a request, waits for the response and decodes its result
// into result.
func (c *conn) ask(ctx context.Context, method string, params, result any) error {
	var raw json.RawMessage
	if params != nil {
		var err error
		if raw, err = jsonrpc.Marshal(params); err != nil {
			return err
		}
	}
	m, err := c.sendRequest(ctx, method, raw)
	if err != nil {
		return err
	}
	if m.Error != nil {
		return fmt.Errorf("the client refused %s: %s", method, m.Error)
	}
	return json.Unmarshal(m.Result, result)
}

// Ask sends a request to the client that made ctx's request, with params
// unchanged, and returns the response byte for byte: a result or an error
// object. It fails if ctx's request did not come over ServeStdio.
func Ask(ctx context.Context, method string, params json.RawMessage) (result, fault json.RawMessage, err error) {
	req := requestOf(ctx)
	if req == nil {
		return nil, nil, errNoAnswer
	}
	m, err := req.conn.sendRequest(ctx, method, params)
	return m.Result, m.Error, err
}

// sendRequest sends the client a request and waits for its response.
func (c *conn) sendRequest(ctx context.Context, method string, params json.RawMessage) (jsonrpc.Message, error) {
	q := &c.outgoing
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return jsonrpc.Message{}, errNoAnswer
	}
	q.lastID++
	id := `"toolroom:` + strconv.Itoa(q.lastID) + `"`
	answer := make(chan jsonrpc.Message, 1)
	if q.pending == nil {
		q.pending = make(map[string]chan jsonrpc.Message)
	}
	q.pending[id] = answer
	q.mu.Unlock()

	c.send(jsonrpc.AppendRequest(nil, json.RawMessage(id), method, params))
	select {
	case m, ok := <-answer:
		if !ok {
			return m, errNoAnswer
		}
		return m, nil
	case <-ctx.Done():
		q.mu.Lock()
		delete(q.pending, id)
		q.mu.Unlock()
		c.send(jsonrpc.AppendNotification(nil, string(mcp.MethodNotificationCancelled), CancelledParams(json.RawMessage(id))))
		return jsonrpc.Message{}, context.Cause(ctx)
	}
}

// CancelledParams returns the params of a notifications/cancelled for the
// request id: its answer is no longer needed, so the client's user need not
// decide on it.
func CancelledParams(id json.RawMessage) json.RawMessage {
	return append(append([]byte(`{"requestId":`), id...), `,"reason":"no longer needed"}`...)
}

// deliverResponse hands the client's response to the goroutine that waits for
// it. A response to no open request is dropped, as JSON-RPC asks.
func (c *conn) deliverResponse(m jsonrpc.Message) {
	key, err := jsonrpc.Key(m.ID)
	if err != nil {
		return
	}
	q := &c.outgoing
	q.mu.Lock()
	defer q.mu.Unlock()
	if answer, ok := q.pending[key]; ok {
		delete(q.pending, key)
		answer <- m
	}
}

// close fails all pending requests and every later request: the input has
// ended.
func (q *outgoingRequests) failAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for id, answer := range q.pending {
		delete(q.pending, id)
		close(answer)
	}
}

// errNoAnswer fails requests to the client once its input has ended.
var errNoAnswer = errors.New("the client closed the connection before it answered")
