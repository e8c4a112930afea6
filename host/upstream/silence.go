package upstream

import (
	"context"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// minded is called for each call: while any waits, somebody minds whether the
// server is still there. c.mu is held.
func (c *conn) minded() {
	if !c.minding {
		c.minding = true
		go c.mind()
	}
}

// mind ends a connection whose server is silent while calls wait: one that is
// stopped, or stuck, or does not read. A long call is no sign of that, so
// after QuietTime without any message the server is asked for a sign of life,
// and given up when QuietTime later there still is none.
func (c *conn) mind() {
	ticker := time.NewTicker(c.cfg.QuietTime)
	defer ticker.Stop()
	for heard := c.heard.Load(); ; heard = c.heard.Load() {
		select {
		case <-ticker.C:
		case <-c.dead:
			return
		}
		if c.unminded() {
			return
		}
		if c.heard.Load() != heard {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), c.cfg.QuietTime)
		c.ping(ctx) //nolint:errcheck // an error is a sign of life, too
		late := ctx.Err() != nil
		cancel()
		if late && c.heard.Load() == heard {
			c.fail(toolerr.New(toolerr.ServerOffline, "the server has been silent for %v, also when pinged, and was stopped", 2*c.cfg.QuietTime))
			return
		}
	}
}

// unminded reports whether nobody waits any more, after which the next
// request begins anew.
func (c *conn) unminded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		c.minding = false
	}
	return !c.minding
}

// ping asks for a sign of life in the server's era.
func (c *conn) ping(ctx context.Context) error {
	method := "ping"
	if c.era == Modern { // which has no ping
		method = "server/discover"
	}
	_, err := c.ask(ctx, method, nil)
	return err
}
