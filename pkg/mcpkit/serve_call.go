package mcpkit

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

// request checks one request and starts it. It returns the request if the
// reading goroutine is to run it, and nil otherwise.
func (c *conn) request(m jsonrpc.Message, line []byte) *view {
	key, err := jsonrpc.Key(m.ID)
	if err != nil { // Split has checked
		return nil
	}
	if fault := checkParams(m); fault != "" {
		c.post(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeInvalidParams, "invalid params: "+fault))
		return nil
	}
	v := &view{conn: c, id: m.ID, key: key, method: m.Method, line: line, params: m.Params}
	v.listen = m.Method == string(mcp.MethodSubscriptionsListen)
	ctx, cancel := context.WithCancelCause(c.ctx)
	v.ctx, v.cancel = c.server.WithContext(ctx, v), cancel

	c.mu.Lock()
	if _, taken := c.inflight[key]; taken {
		c.mu.Unlock()
		cancel(nil)
		// Answer without the id: the client would take it for the first
		// request's answer.
		c.post(jsonrpc.AppendError(nil, nil, jsonrpc.CodeInvalidRequest,
			"invalid request: id "+string(m.ID)+" is in use by an unanswered request"))
		return nil
	}
	c.inflight[key] = v
	c.mu.Unlock()
	return c.start(v)
}

// start runs v, queues it by its method, or returns it for the reading
// goroutine to run.
func (c *conn) start(v *view) *view {
	if v.listen {
		c.listens.Add(1)
		go c.runListen(v)
		return nil
	}
	c.requests.Add(1)
	switch mcp.MCPMethod(v.method) {
	case mcp.MethodInitialize:
		c.run(v) // later lines may depend on it
		return nil
	case mcp.MethodToolsCall, mcp.MethodResourcesRead, mcp.MethodPromptsGet, mcp.MethodCompletionComplete:
		v.queue = c.calls
	default:
		v.queue = c.control
	}
	// No more input and no other request: running it here, without waking
	// another goroutine, saves a tenth of a millisecond.
	if !c.lines.Buffered() && v.queue.relieve(c.read) {
		return v
	}
	v.queue.add(v)
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
func (c *conn) run(v *view) {
	defer c.requests.Done()
	c.serve(v)
}

// runListen serves a listen stream until the client or the end of input closes
// it.
func (c *conn) runListen(v *view) {
	defer c.listens.Done()
	if err := c.server.RegisterSession(v.ctx, v); err != nil {
		c.logf("registering a listen stream: %v", err)
	}
	defer c.server.UnregisterSession(v.ctx, v.SessionID())
	c.serve(v)
}

func (c *conn) serve(v *view) {
	defer v.cancel(nil)
	if !v.state.CompareAndSwap(queued, running) {
		return // cancelled while it waited
	}
	response := c.handle(v)
	v.end()
	message := v.encode(response)
	if !v.state.CompareAndSwap(running, answered) {
		return // cancelled: no answer
	}
	// Before the answer is sent, since the client may reuse the id from then
	// on.
	c.forget(v)
	if v.method == string(mcp.MethodInitialize) {
		c.post(slices.Concat(message...))
		return
	}
	c.send(message...)
}

func (c *conn) forget(v *view) {
	c.mu.Lock()
	if c.inflight[v.key] == v {
		delete(c.inflight, v.key)
	}
	c.mu.Unlock()
}

// handle calls HandleMessage, or opts.Call, and answers a panic with an
// internal error.
func (c *conn) handle(v *view) (response mcp.JSONRPCMessage) {
	defer func() {
		if value := recover(); value != nil {
			c.logPanic(v.method, value)
			response = mcp.NewJSONRPCError(mcp.NewRequestId(nil), mcp.INTERNAL_ERROR,
				"internal error; the server's log has the details", nil)
		}
	}()
	line := v.line
	if c.opts.Call != nil && v.method == string(mcp.MethodToolsCall) {
		short, legacy := v.withoutArguments()
		if legacy && c.opts.Call(v.ctx) {
			if !v.answeredRaw() {
				return nil
			}
			return mcp.JSONRPCResponse{}
		}
		if !legacy {
			line = short
		}
	}
	return c.server.HandleMessage(v.ctx, json.RawMessage(line))
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
	v := c.inflight[key]
	delete(c.inflight, key)
	c.mu.Unlock()
	if v == nil {
		return
	}
	if v.state.CompareAndSwap(queued, cancelled) || v.state.CompareAndSwap(running, cancelled) {
		v.cancel(ErrCancelled)
	}
}

// encode returns the line of the answer in parts. A large result is a part by
// itself, to avoid a copy.
func (v *view) encode(response mcp.JSONRPCMessage) [][]byte {
	if object := v.rawError(); object != nil {
		return [][]byte{jsonrpc.AppendErrorObject(nil, v.id, object)}
	}
	switch r := response.(type) {
	case mcp.JSONRPCError:
		if object, err := jsonrpc.Marshal(r.Error); err == nil {
			return [][]byte{jsonrpc.AppendErrorObject(nil, v.id, PlainError(object))}
		}
	case mcp.JSONRPCResponse:
		result, err := v.result(r.Result)
		if err == nil && len(result) >= smallMessage {
			return [][]byte{jsonrpc.AppendResultHead(nil, v.id), result, []byte("}")}
		}
		if err == nil {
			return [][]byte{jsonrpc.AppendResult(make([]byte, 0, len(result)+len(v.id)+48), v.id, result)}
		}
		v.conn.logf("cannot encode the result of %s: %v", v.method, err)
	}
	return [][]byte{jsonrpc.AppendError(nil, v.id, jsonrpc.CodeInternal, "internal error: "+v.method+" returned an unusable answer")}
}

// result encodes mcp-go's result, or the one set by SetRawResult.
func (v *view) result(result any) (json.RawMessage, error) {
	v.mu.Lock()
	raw := v.raw
	v.mu.Unlock()
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
		closed.EnsureResultMeta().SetSubscriptionID(v.id)
		result = closed
	}
	return jsonrpc.Marshal(result)
}
