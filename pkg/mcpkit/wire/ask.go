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

// outgoingRequests are the requests sent to the client that await a response.
type outgoingRequests struct {
	mu      sync.Mutex
	lastID  int                             // number in the last request's id
	pending map[string]chan jsonrpc.Message // channel for the response, by id
	closed  bool                            // the input has ended: no response can arrive
}

// ask sends the client a request, waits for the response and decodes its result
// into result. It returns an error if the client refuses, closes the connection
// or ctx ends.
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
// unchanged, and waits for the response. It returns the client's result or its
// error object, byte for byte. err is non-nil if there is no response: the
// client closed the connection, ctx ended, or ctx's request did not come over
// ServeStdio.
func Ask(ctx context.Context, method string, params json.RawMessage) (result, fault json.RawMessage, err error) {
	req := requestOf(ctx)
	if req == nil {
		return nil, nil, errNoAnswer
	}
	m, err := req.conn.sendRequest(ctx, method, params)
	return m.Result, m.Error, err
}

// sendRequest sends the client a request and waits for its response. If ctx
// ends first, it cancels the request and returns ctx's cause.
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
// request id, whose answer is no longer needed: the client's user need not
// decide on it.
func CancelledParams(id json.RawMessage) json.RawMessage {
	return append(append([]byte(`{"requestId":`), id...), `,"reason":"no longer needed"}`...)
}

// deliverResponse hands the client's response to the goroutine that waits for
// it. A response to an unknown request is dropped, as JSON-RPC asks.
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

// failAll fails all pending requests and every later one, because the input has
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

// errNoAnswer is the error of requests to the client after its input has ended.
var errNoAnswer = errors.New("the client closed the connection before it answered")
