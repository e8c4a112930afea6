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
const Every = 256 << 10

// Checker checks the context for the passes of one call. It must not be used
// concurrently. A nil Checker never stops.
type Checker struct {
	ctx  context.Context
	left int
	over bool
}

// New returns a Checker for passes that end with ctx.
func New(ctx context.Context) *Checker { return &Checker{ctx: ctx, left: Every} }

// Stopped counts n further bytes, or work that costs as much, and reports
// whether the pass must stop.
func (p *Checker) Stopped(n int) bool {
	if p == nil {
		return false
	}
	if p.left -= n; p.left <= 0 && !p.over {
		p.left, p.over = Every, p.ctx.Err() != nil
	}
	return p.over
}

// Err returns the cause if the context has ended; otherwise nil.
func (p *Checker) Err() error {
	if p == nil {
		return nil
	}
	return context.Cause(p.ctx)
}
