package upstream

import (
	"context"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// startWatchdog starts the watchdog goroutine unless it runs. It is called for each call.
// The caller holds c.mu, and c is not dead.
func (c *conn) startWatchdog() {
	if !c.watchdogRuns {
		c.watchdogRuns = true
		c.watchdogs.Go(c.watchdog)
	}
}

// The interval at which a silent server's process is checked for being stopped, and
// the number of successive findings after which the server is given up.
const (
	stopCheckInterval = time.Second
	maxStopsSeen      = 3
)

// watchdog ends a connection whose server is silent while calls wait: a server that is
// stopped, stuck, or does not read. The system tells whether a process is stopped. For
// others, neither a long call nor an unanswered ping is proof, since many servers
// handle one request at a time. So after QuietTime without any message the server is
// pinged, and given up if there is no message for another QuietTime.
func (c *conn) watchdog() {
	look, quiet := time.NewTicker(stopCheckInterval), time.NewTicker(c.cfg.QuietTime)
	defer look.Stop()
	defer quiet.Stop()
	last, stops := c.messages.Load(), 0
	for heard := last; ; {
		looks := false
		select {
		case <-look.C:
			looks = true
		case <-quiet.C:
		case <-c.dead:
			return
		}
		if c.stopWatchdogIfIdle() {
			return
		}
		now := c.messages.Load()
		if looks {
			if now != last || !c.isProcessStopped() {
				last, stops = now, 0
			} else if stops++; stops == maxStopsSeen {
				c.givenUp.Store(true)
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
		c.ping(ctx) //nolint:errcheck // an error answer is a sign of life, too
		late := ctx.Err() != nil
		cancel()
		if late && c.messages.Load() == heard {
			c.givenUp.Store(true)
			c.fail(toolerr.New(toolerr.ServerOffline, "the server has been silent for %v, also when pinged, and was stopped", 2*c.cfg.QuietTime))
			return
		}
		heard = c.messages.Load()
	}
}

// isProcessStopped reports whether the server's process is known to be stopped.
func (c *conn) isProcessStopped() bool {
	out, ok := c.out.(*stdio)
	return ok && isStopped(out.proc.pid())
}

// stopWatchdogIfIdle stops the watchdog if no request is pending, and reports whether it
// did. The next request starts it again.
func (c *conn) stopWatchdogIfIdle() (stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		c.watchdogRuns = false
	}
	return !c.watchdogRuns
}

// ping sends a request that a living server answers, in the server's era, and waits for the
// answer. The error can be an *call.MCPError, which is a sign of life, too.
func (c *conn) ping(ctx context.Context) error {
	method := "ping"
	if c.era == Modern { // the modern era has no ping
		method = "server/discover"
	}
	_, err := c.requestFromServer(ctx, method, nil)
	return err
}
