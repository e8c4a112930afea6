package mcpkit

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// RawParams returns the params of the request that ctx belongs to, byte for
// byte, for a router that forwards them; nil when there are none, or when the
// request did not come over ServeStdio. The caller must not change them.
func RawParams(ctx context.Context) json.RawMessage {
	if v := viewOf(ctx); v != nil {
		return v.params
	}
	return nil
}

// SetRawError makes object, a JSON-RPC error object without newlines, the
// error that the request of ctx is answered with, byte for byte, whatever the
// handler returns. It reports false when the request did not come over
// ServeStdio.
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

// answeredRaw reports whether an answer was put in the place of mcp-go's.
func (v *view) answeredRaw() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.raw != nil || v.rawErr != nil
}

// withoutArguments returns a tools/call as mcp-go needs it, without arguments,
// and whether there is nothing that it needs it for, since the request is of
// the legacy era and its _meta has the right shape.
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
