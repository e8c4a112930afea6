package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// acceptRequest checks one request and starts it. It returns the request if the
// reading goroutine is to run it, and nil otherwise.
func (c *conn) acceptRequest(m jsonrpc.Message, line []byte) *request {
	key, err := jsonrpc.Key(m.ID)
	if err != nil { // Split has checked
		return nil
	}
	if fault := checkParams(m); fault != "" {
		c.sendWithoutWaiting(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeInvalidParams, "invalid params: "+fault))
		return nil
	}
	req := &request{conn: c, id: m.ID, key: key, method: m.Method, line: line, params: m.Params}
	req.listen = m.Method == string(mcp.MethodSubscriptionsListen)
	ctx, cancel := context.WithCancelCause(c.ctx)
	req.ctx, req.cancel = c.server.WithContext(ctx, req), cancel

	c.mu.Lock()
	if _, taken := c.inflight[key]; taken {
		c.mu.Unlock()
		cancel(nil)
		// Answer without the id: the client would take it for the first
		// request's answer.
		c.sendWithoutWaiting(jsonrpc.AppendError(nil, nil, jsonrpc.CodeInvalidRequest,
			"invalid request: id "+string(m.ID)+" is in use by an unanswered request"))
		return nil
	}
	c.inflight[key] = req
	c.mu.Unlock()
	return c.start(req)
}

// start runs v, queues it by its method, or returns it for the reading
// goroutine to run.
func (c *conn) start(req *request) *request {
	if req.listen {
		c.listens.Add(1)
		go c.runListen(req)
		return nil
	}
	c.requests.Add(1)
	switch mcp.MCPMethod(req.method) {
	case mcp.MethodInitialize:
		c.run(req) // later lines may depend on it
		return nil
	case mcp.MethodToolsCall, mcp.MethodResourcesRead, mcp.MethodPromptsGet, mcp.MethodCompletionComplete:
		req.queue = c.calls
	default:
		req.queue = c.otherRequests
	}
	// No more input and no other request: running it here, without waking
	// another goroutine, saves a tenth of a millisecond.
	if !c.lines.Buffered() && req.queue.handOffReading(c.read) {
		return req
	}
	req.queue.add(req)
	return nil
}

// paramNames are the members of params that mcp-go decodes in any case of
// letters. A router may forward the bytes to a server that distinguishes case.
func paramNames() [7]string {
	return [...]string{"_meta", "name", "arguments", "task", "uri", "requestState", "inputResponses"}
}

// checkParams returns why two readers could understand params differently, or
// "".
func checkParams(m jsonrpc.Message) string {
	if m.Params == nil || string(m.Params) == "null" {
		return ""
	}
	members, err := jsonrpc.Members(m.Params)
	if err != nil {
		if m.Params[0] == '[' {
			return "they must be an object"
		}
		return err.Error()
	}
	for _, member := range members {
		for _, name := range paramNames() {
			if member.Name != name && strings.EqualFold(member.Name, name) {
				return "member " + jsonString(member.Name) + " is spelt " + jsonString(name)
			}
		}
	}
	return ""
}

func jsonString(s string) string { return string(jsonrpc.AppendString(nil, s)) }

// run handles one queued request and answers it.
func (c *conn) run(req *request) {
	defer c.requests.Done()
	c.serve(req)
}

// runListen serves a listen stream until the client or the end of input closes
// it.
func (c *conn) runListen(req *request) {
	defer c.listens.Done()
	if err := c.server.RegisterSession(req.ctx, req); err != nil {
		c.logf("registering a listen stream: %v", err)
	}
	defer c.server.UnregisterSession(req.ctx, req.SessionID())
	c.serve(req)
}

func (c *conn) serve(req *request) {
	defer req.cancel(nil)
	if !req.state.CompareAndSwap(queued, running) {
		return // cancelled while it waited
	}
	response := c.handle(req)
	req.endSending()
	message := req.encodeAnswer(response)
	if !req.state.CompareAndSwap(running, answered) {
		return // cancelled: no answer
	}
	// Before the answer is sent, since the client may reuse the id from then
	// on.
	c.forget(req)
	if req.method == string(mcp.MethodInitialize) {
		c.sendWithoutWaiting(slices.Concat(message...))
		return
	}
	c.send(message...)
}

func (c *conn) forget(req *request) {
	c.mu.Lock()
	if c.inflight[req.key] == req {
		delete(c.inflight, req.key)
	}
	c.mu.Unlock()
}

// handle calls HandleMessage, or opts.Call, and answers a panic with an
// internal error.
func (c *conn) handle(req *request) (response mcp.JSONRPCMessage) {
	defer func() {
		if value := recover(); value != nil {
			c.logPanic(req.method, value)
			response = mcp.NewJSONRPCError(mcp.NewRequestId(nil), mcp.INTERNAL_ERROR,
				"internal error; the server's log has the details", nil)
		}
	}()
	line := req.line
	if c.opts.Call != nil && req.method == string(mcp.MethodToolsCall) {
		short, legacy := req.lineWithoutArguments()
		if legacy && c.opts.Call(req.ctx) {
			if !req.hasRawAnswer() {
				return nil
			}
			return mcp.JSONRPCResponse{}
		}
		if !legacy {
			line = short
		}
	}
	return c.server.HandleMessage(req.ctx, json.RawMessage(line))
}

func (c *conn) logPanic(method string, value any) {
	c.logf("panic in %s: %v\n%s", method, value, debug.Stack())
}

// cancelRequest cancels a request: it gets no answer, and if it is still queued
// it never runs. initialize cannot be cancelled, since it is answered before
// the next line is read.
func (c *conn) cancelRequest(id json.RawMessage) {
	key, err := jsonrpc.Key(id)
	if err != nil {
		return
	}
	c.mu.Lock()
	req := c.inflight[key]
	delete(c.inflight, key)
	c.mu.Unlock()
	if req == nil {
		return
	}
	if req.state.CompareAndSwap(queued, cancelled) || req.state.CompareAndSwap(running, cancelled) {
		req.cancel(ErrCancelled)
	}
}

// encodeAnswer returns the line of the answer in parts. A large result is a
// part by itself, to avoid a copy.
func (req *request) encodeAnswer(response mcp.JSONRPCMessage) [][]byte {
	if object := req.rawError(); object != nil {
		return [][]byte{jsonrpc.AppendErrorObject(nil, req.id, object)}
	}
	switch r := response.(type) {
	case mcp.JSONRPCError:
		if object, err := jsonrpc.Marshal(r.Error); err == nil {
			return [][]byte{jsonrpc.AppendErrorObject(nil, req.id, PlainError(object))}
		}
	case mcp.JSONRPCResponse:
		result, err := req.encodeResult(r.Result)
		if err == nil && len(result) >= smallMessage {
			return [][]byte{jsonrpc.AppendResultHead(nil, req.id), result, []byte("}")}
		}
		if err == nil {
			return [][]byte{jsonrpc.AppendResult(make([]byte, 0, len(result)+len(req.id)+48), req.id, result)}
		}
		req.conn.logf("cannot encode the result of %s: %v", req.method, err)
	}
	return [][]byte{jsonrpc.AppendError(nil, req.id, jsonrpc.CodeInternal, "internal error: "+req.method+" returned an unusable answer")}
}

// encodeResult encodes mcp-go's result, or the result set by SetRawResult.
func (req *request) encodeResult(result any) (json.RawMessage, error) {
	req.mu.Lock()
	raw := req.rawResult
	req.mu.Unlock()
	if raw != nil {
		if bytes.IndexByte(raw, '\n') < 0 {
			return raw, nil
		}
		var one bytes.Buffer
		err := json.Compact(&one, raw)
		return one.Bytes(), err
	}
	if closed, ok := result.(mcp.SubscriptionsListenResult); ok {
		// The id as received; mcp-go has converted it to a float64.
		closed.EnsureResultMeta().SetSubscriptionID(req.id)
		result = closed
	}
	return jsonrpc.Marshal(result)
}
