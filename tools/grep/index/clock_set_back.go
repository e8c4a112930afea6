package index

import (
	"sync"
	"time"
)

// clock detects that the wall clock, which stamps files, was set back.
type clock struct {
	mu        sync.Mutex
	startTime time.Time
	ahead     time.Duration // lead of the wall clock over the monotonic clock since startTime
}

// start sets the reference time. It is called once, before hasGoneBack.
func (c *clock) start(now time.Time) { c.startTime = now }

// hasGoneBack reports whether the clock was set back since the previous call. Up
// to a second is tolerated, for programs that adjust it smoothly.
func (c *clock) hasGoneBack(now time.Time) bool {
	return c.hasSteppedBack(now.Round(0).Sub(c.startTime.Round(0)), now.Sub(c.startTime))
}

// hasSteppedBack reports whether the wall clock was set back by more than a second since
// the last call. wall and monotonic are the times elapsed on the two clocks since
// startTime.
func (c *clock) hasSteppedBack(wall, monotonic time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.ahead
	c.ahead = wall - monotonic
	return c.ahead < before-time.Second
}
