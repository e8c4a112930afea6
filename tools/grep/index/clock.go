package index

import (
	"sync"
	"time"
)

// clock detects that the wall clock, which stamps files, was set back.
type clock struct {
	mu    sync.Mutex
	first time.Time
	ahead time.Duration // lead of the wall clock over the monotonic one since first
}

func (c *clock) start(now time.Time) { c.first = now }

// wentBack reports whether the clock was set back since the previous call. Up
// to a second is tolerated, for programs that adjust it smoothly.
func (c *clock) wentBack(now time.Time) bool {
	return c.steppedBack(now.Round(0).Sub(c.first.Round(0)), now.Sub(c.first))
}

func (c *clock) steppedBack(wall, monotonic time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.ahead
	c.ahead = wall - monotonic
	return c.ahead < before-time.Second
}
