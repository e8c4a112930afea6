package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// readLoop reads messages and starts their requests. It returns nil after the
// input has ended. It returns a request for this goroutine to run, after
// another goroutine has taken over reading.
func (c *conn) readLoop() (toRun *request) {
	req, err := c.readLines()
	if req == nil {
		c.calls.close()
		c.others.close()
		c.readEnded <- err
	}
	return req
}

// readLines is readLoop without the end of reading, whose error it returns; nil
// at the end of input or if the connection is cancelled.
func (c *conn) readLines() (toRun *request, err error) {
	for c.ctx.Err() == nil {
		c.out.waitForBacklog()
		line, err := c.lines.ReadLine()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			c.sendWithoutWaiting(jsonrpc.AppendError(nil, nil, jsonrpc.CodeInvalidRequest, "invalid request: "+err.Error()))
			continue
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("reading: %w", err)
		}
		if req := c.handleLine(line); req != nil {
			return req, nil
		}
	}
	return nil, nil
}

// handleLine handles one line: it delivers a response, handles a notification, and
// answers a line that is not a message with an error. For a request that the reading
// goroutine must run itself, it returns the request; otherwise nil.
func (c *conn) handleLine(line []byte) (toRun *request) {
	if isBlank(line) {
		return nil
	}
	if c.opts.Trace != nil {
		c.opts.Trace(false, line)
	}
	m, err := jsonrpc.Split(line)
	if err != nil {
		var fault *jsonrpc.Error
		if !errors.As(err, &fault) {
			fault = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "internal error"}
		}
		c.sendWithoutWaiting(jsonrpc.AppendError(nil, fault.ID, fault.Code, fault.Message))
		return nil
	}
	switch m.Kind {
	case jsonrpc.Response:
		c.deliverResponse(m)
	case jsonrpc.Notification:
		c.handleNotification(m, line)
	case jsonrpc.Request:
		return c.acceptRequest(m, line)
	}
	return nil
}

// isBlank reports whether a line is empty or has only white space.
func isBlank(line []byte) bool {
	for _, b := range line {
		if b != ' ' && b != '\t' && b != '\r' {
			return false
		}
	}
	return true
}

// handleNotification handles a notification from the client. Handlers that a
// server registers for other notifications run here, in order; they must not
// block.
func (c *conn) handleNotification(m jsonrpc.Message, line []byte) {
	switch m.Method {
	case string(mcp.MethodNotificationCancelled):
		c.cancelRequest(jsonrpc.MemberOf(m.Params, "requestId"))
		return
	case "notifications/initialized":
		c.handshake.mu.Lock()
		c.handshake.ready = c.handshake.initialized
		c.handshake.mu.Unlock()
	case string(mcp.MethodNotificationRootsListChanged):
		c.forgetRoots()
	}
	defer func() {
		if value := recover(); value != nil {
			c.logPanic(m.Method, value)
		}
	}()
	c.server.HandleMessage(c.server.WithContext(c.ctx, c.session), json.RawMessage(line))
}
