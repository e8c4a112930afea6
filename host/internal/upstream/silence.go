package upstream

import (
	"context"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// minded is called for each call: while any waits, somebody minds whether the
// server is still there. c.mu is held, and c is not dead.
func (c *conn) minded() {
	if !c.minding {
		c.minding = true
		c.minds.Go(c.mind)
	}
}

// How often it is looked whether a server that is silent while calls wait is
// stopped, and how often in a row it is found to be before it is given up.
const (
	lookEvery = time.Second
	mostStops = 3
)

// mind ends a connection whose server is silent while calls wait: one that is
// stopped, or stuck, or does not read. The system says which process is
// stopped. Of another a long call is no sign, nor is it that a ping meanwhile is
// unanswered: many do one thing after the other. So after QuietTime without
// any message the server is asked for a sign of life, and given up when
// QuietTime later there still is none.
func (c *conn) mind() {
	look, quiet := time.NewTicker(lookEvery), time.NewTicker(c.cfg.QuietTime)
	defer look.Stop()
	defer quiet.Stop()
	last, stops := c.heard.Load(), 0
	for heard := last; ; {
		looks := false
		select {
		case <-look.C:
			looks = true
		case <-quiet.C:
		case <-c.dead:
			return
		}
		if c.unminded() {
			return
		}
		now := c.heard.Load()
		if looks {
			if now != last || !c.stopped() {
				last, stops = now, 0
			} else if stops++; stops == mostStops {
				c.fail(toolerr.New(toolerr.ServerOffline, "the server's process was stopped (SIGSTOP or similar) and was killed"))
				return
			}
			continue
		}
		if now != heard {
			heard = now
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
		heard = c.heard.Load()
	}
}

// stopped reports whether the server's process is known to be stopped.
func (c *conn) stopped() bool {
	out, ok := c.out.(*stdio)
	return ok && isStopped(out.proc.pid())
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
