package catalog

import (
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// How often a list is asked for that its server says has changed: at once, then
// after firstPause, each time twice as long while it goes on so, mostPause at
// most. Every change is told to all clients, which fetch the lists of all
// servers for it, and to the user where definitions are pinned: a server that
// changes without end must not keep them busy.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = 30 * time.Second
	calm       = time.Second // beyond twice the last pause, after which all begins anew
)

// pace is when a list was asked for since it changed, and may be again. The
// catalogue's mu guards it.
type pace struct {
	again bool // it changed since it was asked for
	last  time.Time
	pause time.Duration
	later *time.Timer // asks; nil: nothing is waited for
}

// wait is how long not to ask now.
func (p *pace) wait(now time.Time) time.Duration {
	since := now.Sub(p.last)
	if since > 2*p.pause+calm {
		p.pause = 0
	}
	return p.pause - since
}

func (p *pace) took(now time.Time) {
	p.again, p.last = false, now
	p.pause = min(max(2*p.pause, firstPause), mostPause)
}

func (p *pace) stop() {
	if p.later != nil {
		p.later.Stop()
	}
}

// follow asks for a list that has changed, now or as soon as it may. c.mu is held.
func (c *Catalog) follow(s *server, kind call.Kind) {
	l := s.lists[kind]
	l.again = true
	if c.closed || l.busy != nil || l.later != nil {
		return // it will be looked at
	}
	now := time.Now()
	if wait := l.wait(now); wait > 0 {
		l.later = time.AfterFunc(wait, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			l.later = nil
			if slices.Contains(c.all(), s) {
				c.follow(s, kind)
			}
		})
		return
	}
	l.took(now)
	c.ask(s, kind)
}
