package upstream

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/netguard"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
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

// NextID returns the id of the next request to a shared process.
func NextID(s *Server) uint64 {
	s.mu.Lock()
	ids := &s.conn.out.(*sharedWire).ids
	s.mu.Unlock()
	ids.mu.Lock()
	defer ids.mu.Unlock()
	return ids.next
}

// AttachLine returns the line with which a server's host asks for its process, with
// another time for the start.
func AttachLine(s *Server, start time.Duration) ([]byte, error) {
	r, err := attachRequestOf(s.cfg, nil, 0)
	if err != nil {
		return nil, err
	}
	r.StartTime = start
	params, err := jsonrpc.Marshal(r)
	return append(jsonrpc.AppendRequest(nil, json.RawMessage("0"), MethodAttach, params), '\n'), err
}

// EndIdleInstance ends a caller's run, as the idle timer does.
func EndIdleInstance(s *Server, caller string) { s.endIdleInstance(caller) }
