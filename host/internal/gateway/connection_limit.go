package gateway

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// maxConns bounds the open connections of the HTTP server.
const maxConns = 2048

// maxConnsFor returns the limit of connections for a process that may have a number of
// descriptors, 0 if the number is unknown. It is a third of them, since upstreams and
// requests to them need descriptors too.
func maxConnsFor(descriptors uint64) int {
	if descriptors == 0 {
		return maxConns
	}
	return int(max(1, min(maxConns, descriptors/3)))
}

// connLimiter bounds the connections of a server. Beyond the limit it closes the
// connection that has been idle longest, so that a client with many idle connections
// does not lock others out. It does not close a connection during a request.
type connLimiter struct {
	max int

	mu   sync.Mutex
	open map[net.Conn]*list.Element // nil: a request is running
	idle list.List                  // values are net.Conn, longest idle first
}

// onStateChange is the ConnState function of the http.Server. It closes the connection
// that has been idle longest when a new one exceeds the limit.
func (c *connLimiter) onStateChange(conn net.Conn, state http.ConnState) {
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
