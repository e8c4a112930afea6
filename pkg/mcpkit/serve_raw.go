package mcpkit

import (
	"context"
	"encoding/json"
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
