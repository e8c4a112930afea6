package upstream

import (
	"context"

	"github.com/toolroom-mcp/toolroom/internal/netguard"
)

// CheckAddress is the guard of a configured host for one address.
func CheckAddress(host string, private bool, address string) error {
	return addressGuard{host: host, allowPrivate: private || netguard.IsLocalName(host)}.check("tcp", address, nil)
}

// IsStopped reports whether a child is stopped.
func IsStopped(pid int) bool { return isStopped(pid) }

// Pending is how many requests wait for an answer of the server that runs now.
func Pending(s *Server) int {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending)
}

// DialGuarded connects as the client of a configured host does.
func DialGuarded(ctx context.Context, host, address string) error {
	conn, err := addressGuard{host: host}.dial(ctx, "tcp", address)
	if err == nil {
		conn.Close() //nolint:errcheck // a test's
	}
	return err
}

// SharedPending returns the number of requests of hosts that wait for answers.
func SharedPending(p *SharedServers) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, some := range p.byKey {
		for _, process := range some {
			process.mu.Lock()
			n += len(process.pending)
			process.mu.Unlock()
		}
	}
	return n
}
