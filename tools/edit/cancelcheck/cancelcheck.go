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

// Interval is the number of bytes between two checks of the context. The
// slowest pass needs a few milliseconds for them.
const Interval = 256 << 10

// Checker checks the context for the passes of one call. It must not be used
// concurrently. A nil Checker never stops a pass.
type Checker struct {
	ctx       context.Context
	remaining int  // bytes until the next check
	stopped   bool // the context had ended at the last check
}

// New returns a Checker for passes that end with ctx.
func New(ctx context.Context) *Checker { return &Checker{ctx: ctx, remaining: Interval} }

// Stopped counts n further bytes, or work that costs as much, and reports
// whether the pass must stop because the context has ended. It checks the
// context once every Interval bytes.
func (c *Checker) Stopped(n int) bool {
	if c == nil {
		return false
	}
	if c.remaining -= n; c.remaining <= 0 && !c.stopped {
		c.remaining, c.stopped = Interval, c.ctx.Err() != nil
	}
	return c.stopped
}

// Err returns the cause if the context has ended; otherwise, and for a nil
// Checker, nil. Unlike Stopped, it checks the context at each call.
func (c *Checker) Err() error {
	if c == nil {
		return nil
	}
	return context.Cause(c.ctx)
}
