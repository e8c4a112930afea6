package catalog

import (
	"context"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// KnownSnapshot returns the current snapshot without asking any server.
func (c *Catalog) KnownSnapshot() *Snapshot { return c.currentSnapshot() }

// RefreshNow requests a server's tools, even if they are known, and waits until the
// catalog has them. It returns only the error of ctx; Errors has that of the server. For
// an unknown server, or after Close, it returns nil at once.
func (c *Catalog) RefreshNow(ctx context.Context, name string) error {
	for _, s := range c.allServers() {
		if s.Source.Name() != name {
			continue
		}
		c.mu.Lock()
		l := s.lists[call.Tools]
		c.requestList(s, call.Tools)
		busy := l.busy
		c.mu.Unlock()
		if busy == nil { // the catalog is closed
			return nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
