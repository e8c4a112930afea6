package wire

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// acceptRequest checks one request, registers it as in flight and starts it. It
// returns the request if the reading goroutine must run it, otherwise nil. It
// answers an invalid request with an error.
func (c *conn) acceptRequest(m jsonrpc.Message, line []byte) (toRun *request) {
	key, err := jsonrpc.Key(m.ID)
	if err != nil { // Split has checked
		return nil
	}
	if fault := ambiguousParams(m); fault != "" {
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
	return c.startRequest(req)
}

// startRequest starts an accepted request: it runs initialize at once and a subscription
// stream in another goroutine, and queues other requests. It returns nil for these. If no
// further input is buffered and all workers of its queue are idle, it returns the request
// instead: the reading goroutine must run it.
func (c *conn) startRequest(req *request) (toRun *request) {
	if req.listen {
		c.listens.Add(1)
		go c.runListen(req)
		return nil
	}
	c.requests.Add(1)
	switch mcp.MCPMethod(req.method) {
	case mcp.MethodInitialize:
		c.runQueued(req) // later lines may depend on it
		return nil
	case mcp.MethodToolsCall, mcp.MethodResourcesRead, mcp.MethodPromptsGet, mcp.MethodCompletionComplete:
		req.queue = c.calls
	default:
		req.queue = c.others
	}
	// No more input and no other request: running it here, without waking
	// another goroutine, saves a tenth of a millisecond.
	if !c.lines.Buffered() && req.queue.handOffReading(c.readLoop) {
		return req
	}
	req.queue.add(req)
	return nil
}

// caseInsensitiveParams returns the names of those members of params that
// mcp-go decodes in any case of letters. A router may forward the bytes to a
// server that distinguishes case.
func caseInsensitiveParams() [7]string {
	return [...]string{"_meta", "name", "arguments", "task", "uri", "requestState", "inputResponses"}
}

// ambiguousParams returns why two readers could understand a request's params
// differently, or "".
func ambiguousParams(m jsonrpc.Message) (why string) {
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
		for _, name := range caseInsensitiveParams() {
			if member.Name != name && strings.EqualFold(member.Name, name) {
				return "member " + jsonString(member.Name) + " is spelt " + jsonString(name)
			}
		}
	}
	return ""
}

// jsonString returns s as a JSON string, with its quotes.
func jsonString(s string) string { return string(jsonrpc.AppendString(nil, s)) }
