package upstream

import (
	"maps"
	"strconv"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// callers holds the owners of cancelled requests that the server has not answered: it may
// still work on them. The conn's mu guards it.
type callers struct {
	cancelled map[uint64]cancelledCall
	full      time.Time // when there was no room for another one
}

// cancelledCall is a request whose answer nobody waits for.
type cancelledCall struct {
	owner call.Owner
	at    time.Time
}

// recordOwner records the owner of a request, unless the host itself sends it.
func (c *conn) recordOwner(by call.Caller) {
	if owner := by.Owner(); by.EntryPoint != "" || by.ID != "" || owner != (call.Owner{}) {
		c.owners.Add(owner)
	}
}

// gaveUp records that a caller waits no longer for the answer to a request.
func (c *callers) gaveUp(id uint64, by call.Caller) {
	if len(c.cancelled) >= maxCancelled {
		maps.DeleteFunc(c.cancelled, func(_ uint64, request cancelledCall) bool { return time.Since(request.at) > cancelledTime })
		if len(c.cancelled) >= maxCancelled {
			c.full = time.Now()
			return
		}
	}
	if c.cancelled == nil {
		c.cancelled = map[uint64]cancelledCall{}
	}
	c.cancelled[id] = cancelledCall{by.Owner(), time.Now()}
}

// answered records that the server has answered a request.
func (c *callers) answered(id uint64) { delete(c.cancelled, id) }

// othersGaveUp reports whether another user, or a client with another profile, has cancelled
// a request within cancelledTime that the server has not answered. It reports true as well if
// there were too many cancelled requests to record.
func (c *callers) othersGaveUp(by call.Caller) bool {
	if time.Since(c.full) <= cancelledTime {
		return true
	}
	for id, request := range c.cancelled {
		if time.Since(request.at) > cancelledTime {
			delete(c.cancelled, id)
		} else if request.owner != by.Owner() {
			return true
		}
	}
	return false
}

// sendCancelled sends notifications/cancelled for a request.
func (c *conn) sendCancelled(id uint64) {
	params := strconv.AppendUint([]byte(`{"requestId":`), id, 10)
	params = append(params, `,"reason":"the caller cancelled it"}`...)
	c.send(append(jsonrpc.AppendNotification(nil, "notifications/cancelled", params), '\n'))
}
