package wire

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// MetaClient is the _meta member that names the session a call belongs to: a
// host that calls tools for several clients sends the same string with all
// calls of a session.
const MetaClient = "toolroom/client"

// MetaRequest is the _meta member in which a server's request to its client names the
// request of the client that it belongs to, by its id. A host that calls tools for
// several clients needs it to ask the right one. It is sent only for calls with
// MetaClient.
const MetaRequest = "toolroom/request"

// RawParams returns the params of ctx's request, byte for byte, for a router
// that forwards them; nil if there are none or the request did not come over
// ServeStdio. They must not be changed.
func RawParams(ctx context.Context) json.RawMessage {
	if req := requestOf(ctx); req != nil {
		return req.params
	}
	return nil
}

// SetRawResult makes result, a JSON object without newlines, the result of
// ctx's request, byte for byte. It replaces the result that the handler
// returns; the handler must not return an error. It returns false, without
// effect, if the request did not come over ServeStdio.
func SetRawResult(ctx context.Context, result json.RawMessage) (ok bool) {
	req := requestOf(ctx)
	if req == nil {
		return false
	}
	req.mu.Lock()
	defer req.mu.Unlock()
	req.rawResult = result
	return true
}

// SetRawError makes object, a JSON-RPC error object without newlines, the
// answer to ctx's request, byte for byte, whatever the handler returns. It
// returns false, without effect, if the request did not come over ServeStdio.
func SetRawError(ctx context.Context, object json.RawMessage) (ok bool) {
	req := requestOf(ctx)
	if req == nil {
		return false
	}
	req.mu.Lock()
	defer req.mu.Unlock()
	req.rawErr = object
	return true
}

// rawError returns the error object given to SetRawError, nil if it was not
// called.
func (req *request) rawError() json.RawMessage {
	req.mu.Lock()
	defer req.mu.Unlock()
	return req.rawErr
}

// hasRawAnswer reports whether SetRawResult or SetRawError was called.
func (req *request) hasRawAnswer() bool {
	req.mu.Lock()
	defer req.mu.Unlock()
	return req.rawResult != nil || req.rawErr != nil
}

// lineWithoutArguments returns the line of a tools/call without its arguments, for mcp-go
// to decode. legacy is true, and line nil, if mcp-go is not needed: the request is of the
// legacy era and its _meta is well-formed.
func (req *request) lineWithoutArguments() (line []byte, legacy bool) {
	members, err := jsonrpc.Members(req.params)
	if err != nil { // absent, or null
		return req.line, false
	}
	legacy = true
	for _, m := range members {
		if m.Name != "_meta" {
			continue
		}
		meta, err := jsonrpc.Members(m.Value)
		if err != nil {
			return req.line, false
		}
		for _, m := range meta {
			if m.Name == mcp.MetaKeyProtocolVersion {
				legacy = false
			}
		}
	}
	if legacy {
		return nil, true
	}
	params := []byte{'{'}
	for _, m := range members {
		if m.Name == "arguments" {
			continue
		}
		if len(params) > 1 {
			params = append(params, ',')
		}
		params = append(append(jsonrpc.AppendString(params, m.Name), ':'), m.Value...)
	}
	return jsonrpc.AppendRequest(make([]byte, 0, len(params)+len(req.id)+64), req.id, req.method, append(params, '}')), false
}
