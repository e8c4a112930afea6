// Package cancelcheck makes long passes over text in memory cancellable.
//
//	c := cancelcheck.New(ctx)
//	for at < len(text) {
//		if c.Stopped(n) { // n bytes were looked at
//			return
//		}
//	}
//	if err := c.Err(); err != nil { … }
//
// A cancelled pass ends at once with partial results. Its caller calls Err at
// the end and discards them.
package cancelcheck

import "context"

// Every is the number of bytes between two checks of the context: a few
// milliseconds of the slowest pass.
const Interval = 256 << 10

// Checker checks the context for the passes of one call. It must not be used
// concurrently. A nil Checker never stops.
type Checker struct {
	ctx       context.Context
	remaining int
	stopped   bool
}

// New returns a Checker for passes that end with ctx.
func New(ctx context.Context) *Checker { return &Checker{ctx: ctx, remaining: Interval} }

// Stopped counts n further bytes, or work that costs as much, and reports
// whether the pass must stop.
func (c *Checker) Stopped(n int) bool {
	if c == nil {
		return false
	}
	if c.remaining -= n; c.remaining <= 0 && !c.stopped {
		c.remaining, c.stopped = Interval, c.ctx.Err() != nil
	}
	return c.stopped
}

// Err returns the cause if the context has ended; otherwise nil.
func (c *Checker) Err() error {
	if c == nil {
		return nil
	}
	return context.Cause(c.ctx)
}
