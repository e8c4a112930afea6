package main

import (
	"context"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// permits limits the agents that run at once. Each depth has separate slots, so
// that agents never wait for an agent that waits for them. It is safe for
// concurrent use.
type permits struct {
	size int // slots for each depth

	mu  sync.Mutex
	all map[int]chan struct{} // slots by depth
}

// acquire waits for a slot of the given depth. It returns CANCELLED if ctx ends first.
// The caller must call release.
func (p *permits) acquire(ctx context.Context, depth int) (release func(), err error) {
	p.mu.Lock()
	if p.all == nil {
		p.all = map[int]chan struct{}{}
	}
	slots := p.all[depth]
	if slots == nil {
		slots = make(chan struct{}, p.size)
		p.all[depth] = slots
	}
	p.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, toolerr.New(toolerr.Cancelled, "cancelled before the agent started: %w", context.Cause(ctx))
	}
}
