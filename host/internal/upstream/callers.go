package upstream

import (
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// recordOwner records the owner of a request, unless the host itself sends it.
func (c *conn) recordOwner(by call.Caller) {
	if isClient(by) {
		c.owners.Add(by.Owner())
	}
}

// isClient reports whether a client sends a request, not the host itself.
func isClient(by call.Caller) bool {
	return by.EntryPoint != "" || by.ID != "" || by.Owner() != (call.Owner{})
}

// sendCancelled sends notifications/cancelled for a request.
func (c *conn) sendCancelled(id uint64) {
	params := strconv.AppendUint([]byte(`{"requestId":`), id, 10)
	params = append(params, `,"reason":"the caller cancelled it"}`...)
	c.send(append(jsonrpc.AppendNotification(nil, "notifications/cancelled", params), '\n'))
}
