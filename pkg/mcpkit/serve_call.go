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

// request takes one request: checks it, and has it run now or in its turn. It
// returns it where the goroutine that reads is to run it.
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
		// Not under that id: the client would take it for the first one's answer.
		c.post(jsonrpc.AppendError(nil, nil, jsonrpc.CodeInvalidRequest,
			"invalid request: id "+string(m.ID)+" is in use by an unanswered request"))
		return nil
	}
	c.inflight[key] = v
	c.mu.Unlock()
	return c.start(v)
}

// start puts v where its method belongs, or returns it to be run by the
// goroutine that reads.
func (c *conn) start(v *view) *view {
	if v.listen {
		c.listens.Add(1)
		go c.runListen(v)
		return nil
	}
	c.requests.Add(1)
	switch mcp.MCPMethod(v.method) {
	case mcp.MethodInitialize:
		c.run(v) // what comes next on the line may build on it
		return nil
	case mcp.MethodToolsCall, mcp.MethodResourcesRead, mcp.MethodPromptsGet, mcp.MethodCompletionComplete:
		v.queue = c.calls
	default:
		v.queue = c.control
	}
	// Nothing else to read and nothing else to do: that the request need not
	// wait for another goroutine to wake up saves a tenth of a millisecond.
	if !c.lines.Buffered() && v.queue.relieve(c.read) {
		return v
	}
	v.queue.add(v)
	return nil
}

// paramNames are the members of params that mcp-go decodes without regard to
// case. A router behind it forwards the bytes to one that does regard it.
func paramNames() [7]string {
	return [...]string{"_meta", "name", "arguments", "task", "uri", "requestState", "inputResponses"}
}

// checkParams says what keeps params from being read in one way only.
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

// run carries out one request and answers it.
func (c *conn) run(v *view) {
	defer c.requests.Done()
	c.serve(v)
}

// runListen carries a listen stream until the client or the end of input
// closes it.
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
	// Before the answer goes out, since the id is free from then on.
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

// handle is HandleMessage that survives a panic.
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

// cancelRequest takes a request out of flight: it gets no answer, and if it
// still waits for its turn it never runs. An initialize cannot be cancelled,
// since it is answered before the next line is read.
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

// encode makes the answer's line, of which a large result is a part of its
// own: it is not copied.
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

// result encodes what mcp-go returned, or what was put in its place.
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
		// The id as it came; mcp-go has made a float64 of it.
		closed.EnsureResultMeta().SetSubscriptionID(v.id)
		result = closed
	}
	return jsonrpc.Marshal(result)
}
