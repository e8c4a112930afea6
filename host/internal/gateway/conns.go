package gateway

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// maxConns is how many connections the HTTP door keeps open at most.
const maxConns = 2048

// connLimit is how many the door keeps open where a process may have so many
// descriptors, 0 meaning that there is no telling: a third, since the servers
// behind the door and what is asked of them need some, too.
func connLimit(descriptors uint64) int {
	if descriptors == 0 {
		return maxConns
	}
	return int(max(1, min(maxConns, descriptors/3)))
}

// conns bounds the connections of a server. Beyond the bound the one that has
// waited longest without a request is closed, so that who opens many and says
// nothing locks nobody out; one in the middle of a request is left alone.
type conns struct {
	max int

	mu   sync.Mutex
	open map[net.Conn]*list.Element // nil: in the middle of a request
	idle list.List                  // of net.Conn, those that have waited longest first
}

// changed is a http.Server's ConnState.
func (c *conns) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if waits := c.open[conn]; waits != nil {
		c.idle.Remove(waits)
	}
	switch state {
	case http.StateNew, http.StateIdle:
		if c.open == nil {
			c.open = map[net.Conn]*list.Element{}
		}
		c.open[conn] = c.idle.PushBack(conn)
		if oldest := c.idle.Front(); len(c.open) > c.max {
			oldest.Value.(net.Conn).Close() //nolint:errcheck // its state changes to closed
			c.idle.Remove(oldest)
			delete(c.open, oldest.Value.(net.Conn))
		}
	case http.StateActive:
		c.open[conn] = nil
	case http.StateHijacked, http.StateClosed:
		delete(c.open, conn)
	}
}
