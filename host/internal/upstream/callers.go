package upstream

import (
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// callers records whose requests a server may be working on, also without one that waits
// for an answer. The conn's mu guards it.
type callers struct {
	user         string // the first signed-in user; "": none yet
	severalUsers bool   // another user has called, too
	cancelled    map[uint64]cancelledCall
}

// cancelledCall is a request whose answer nobody waits for.
type cancelledCall struct {
	user, profile string // of the caller
	at            time.Time
}

// began records the start of a request.
func (c *callers) began(by call.Caller) {
	switch {
	case by.User == "":
	case c.user == "":
		c.user = by.User
	case c.user != by.User:
		c.severalUsers = true
	}
}

// gaveUp records that a caller waits no longer for the answer to a request.
func (c *callers) gaveUp(id uint64, by call.Caller) {
	if len(c.cancelled) >= maxCancelled {
		return
	}
	if c.cancelled == nil {
		c.cancelled = map[uint64]cancelledCall{}
	}
	c.cancelled[id] = cancelledCall{by.User, by.Profile, time.Now()}
}

// answered records that the server has answered a request.
func (c *callers) answered(id uint64) { delete(c.cancelled, id) }

// othersGaveUp reports whether another user, or a client with another profile, has cancelled
// a request within cancelledTime that the server has not answered.
func (c *callers) othersGaveUp(by call.Caller) bool {
	for id, request := range c.cancelled {
		if time.Since(request.at) > cancelledTime {
			delete(c.cancelled, id)
		} else if request.user != by.User || request.profile != by.Profile {
			return true
		}
	}
	return false
}
