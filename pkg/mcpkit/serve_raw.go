package mcpkit

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// RawParams returns the params of ctx's request, byte for byte, for a router
// that forwards them; nil if there are none or the request did not come over
// ServeStdio. The caller must not change them.
func RawParams(ctx context.Context) json.RawMessage {
	if v := viewOf(ctx); v != nil {
		return v.params
	}
	return nil
}

// SetRawError makes object, a JSON-RPC error object without newlines, the
// answer to ctx's request, byte for byte, whatever the handler returns. It
// reports false if the request did not come over ServeStdio.
func SetRawError(ctx context.Context, object json.RawMessage) bool {
	v := viewOf(ctx)
	if v == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rawErr = object
	return true
}

func (v *view) rawError() json.RawMessage {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rawErr
}

// answeredRaw reports whether SetRawResult or SetRawError was called.
func (v *view) answeredRaw() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.raw != nil || v.rawErr != nil
}

// withoutArguments returns a tools/call without its arguments, for mcp-go to
// decode. legacy reports that mcp-go is not needed: the request is of the
// legacy era and its _meta is well-formed.
func (v *view) withoutArguments() (line []byte, legacy bool) {
	members, err := jsonrpc.Members(v.params)
	if err != nil { // absent, or null
		return v.line, false
	}
	legacy = true
	for _, m := range members {
		if m.Name != "_meta" {
			continue
		}
		meta, err := jsonrpc.Members(m.Value)
		if err != nil {
			return v.line, false
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
	return jsonrpc.AppendRequest(make([]byte, 0, len(params)+len(v.id)+64), v.id, v.method, append(params, '}')), false
}
