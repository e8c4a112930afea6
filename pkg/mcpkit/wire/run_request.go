package wire

import (
	"encoding/json"
	"runtime/debug"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// runQueued runs a request that comes from a queue, unless it was cancelled
// meanwhile, and sends its answer.
func (c *conn) runQueued(req *request) {
	defer c.requests.Done()
	c.handleAndAnswer(req)
}

// runListen serves a subscription stream until the client or the end of input
// closes it.
func (c *conn) runListen(req *request) {
	defer c.listens.Done()
	if err := c.server.RegisterSession(req.ctx, req); err != nil {
		c.logf("registering a listen stream: %v", err)
	}
	defer c.server.UnregisterSession(req.ctx, req.SessionID())
	c.handleAndAnswer(req)
}

// handleAndAnswer handles a request and sends its answer, unless the client has
// cancelled it.
func (c *conn) handleAndAnswer(req *request) {
	defer req.cancel(nil)
	if !req.state.CompareAndSwap(queued, running) {
		return // cancelled while it waited
	}
	response := c.handle(req)
	req.closeSending()
	message := req.encodeAnswer(response)
	if !req.state.CompareAndSwap(running, answered) {
		return // cancelled: no answer
	}
	// Before the answer is sent, since the client may reuse the id from then
	// on.
	c.removeInflight(req)
	if req.method == string(mcp.MethodInitialize) {
		c.sendWithoutWaiting(slices.Concat(message...))
		return
	}
	c.send(message...)
}

// removeInflight removes a request from those in flight, so that its id can be
// used again.
func (c *conn) removeInflight(req *request) {
	c.mu.Lock()
	if c.inflight[req.key] == req {
		delete(c.inflight, req.key)
	}
	c.mu.Unlock()
}

// handle calls mcp-go's HandleMessage, or opts.Call, and returns the answer. A
// panic is answered with an internal error.
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

// logPanic logs the value of a panic in the handler of method, with the stack.
func (c *conn) logPanic(method string, value any) {
	c.logf("panic in %s: %v\n%s", method, value, debug.Stack())
}

// cancelRequest cancels the request with that id: it gets no answer, and if it
// is still queued it never runs. An unknown id is ignored. initialize cannot be
// cancelled, since it is answered before the next line is read.
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
