package wire

import (
	"context"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Notify sends a notification that belongs to ctx's request, with params
// unchanged, before the request's answer. It reports whether it queued the
// notification: false if the request has been answered or cancelled or did not
// come over ServeStdio, or if the client has stopped reading and the backlog is
// full.
func Notify(ctx context.Context, method string, params json.RawMessage) (queued bool) {
	req := requestOf(ctx)
	if req == nil {
		return false
	}
	req.mu.Lock()
	defer req.mu.Unlock()
	if req.sendingEnded() {
		return false
	}
	return req.conn.trySend(jsonrpc.AppendNotification(nil, method, params))
}
