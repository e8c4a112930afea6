package catalog

import (
	"context"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// Known is the catalogue as it is, without asking any server.
func (c *Catalog) Known() *Snapshot { return c.current.Load() }

// Now asks the server of that name for its tools, whether or not somebody has,
// and waits until the catalogue knows them. Its error is ctx's.
func (c *Catalog) Now(ctx context.Context, name string) error {
	for _, s := range c.all() {
		if s.Source.Name() != name {
			continue
		}
		c.mu.Lock()
		l := s.lists[call.Tools]
		c.ask(s, call.Tools)
		busy := l.busy
		c.mu.Unlock()
		if busy == nil { // closed
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
