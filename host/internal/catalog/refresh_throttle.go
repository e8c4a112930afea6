package catalog

import (
	"context"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// The interval of requests for a list whose server reports changes: at once, then
// after firstPause, which doubles up to maxPause while the changes continue. Every
// change is sent to all clients, which then request the lists of all servers, and to
// the user if definitions are pinned. A server that changes constantly must not keep
// them busy.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 30 * time.Second
	quietTime  = time.Second // longer than twice the last pause; then the pauses start again
)

// refreshThrottle spaces the requests for one list of a server: the pause between them
// doubles from firstPause to maxPause. The catalog's mu guards it.
type refreshThrottle struct {
	changed bool // the list has changed since the last request
	last    time.Time
	pause   time.Duration
	timer   *time.Timer // makes the next request; nil: none is scheduled
}

// wait returns the time until the next request is permitted; 0 or less: it is permitted now.
// After a quiet time it resets the pause.
func (p *refreshThrottle) wait(now time.Time) time.Duration {
	since := now.Sub(p.last)
	if since > 2*p.pause+quietTime {
		p.pause = 0
	}
	return p.pause - since
}

// recordRequest records that the list was requested at now, which doubles the pause
// before the next request, from firstPause to maxPause.
func (p *refreshThrottle) recordRequest(now time.Time) {
	p.changed, p.last = false, now
	p.pause = min(max(2*p.pause, firstPause), maxPause)
}

// stop stops the timer of a delayed refresh, if there is one.
func (p *refreshThrottle) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// Relist requests the tools of a server again, without regard to the throttle, and waits
// for them until ctx ends. It is for a change that a client caused, such as a sign-in.
func (c *Catalog) Relist(ctx context.Context, name string) {
	for requested := false; !requested; {
		c.mu.Lock()
		var busy chan struct{}
		for _, s := range c.allServers() {
			if s.Source.Name() != name {
				continue
			}
			l := s.lists[call.Tools]
			if l.busy == nil { // otherwise the running request may be too early
				requested = true
				c.requestList(s, call.Tools)
			}
			busy = l.busy
		}
		c.mu.Unlock()
		if busy == nil { // there is no such server, or the catalog is closed
			return
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return
		}
	}
}

// requestWhenPermitted requests a changed list as soon as the throttle permits. The caller
// holds c.mu.
func (c *Catalog) requestWhenPermitted(s *server, kind call.ListKind) {
	l := s.lists[kind]
	l.changed = true
	if c.closed || l.busy != nil || l.timer != nil {
		return // the scheduled request includes it
	}
	now := time.Now()
	if wait := l.wait(now); wait > 0 {
		l.timer = time.AfterFunc(wait, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			l.timer = nil
			if slices.Contains(c.allServers(), s) {
				c.requestWhenPermitted(s, kind)
			}
		})
		return
	}
	l.recordRequest(now)
	c.requestList(s, kind)
}
