// Package cancelcheck makes long passes over text in memory cancellable.
//
//	p := pace.Of(ctx)
//	for at < len(text) {
//		if p.Over(n) { // n bytes were looked at
//			return
//		}
//	}
//	if err := p.Err(); err != nil { … }
//
// A cancelled pass ends at once with partial results. Its caller calls Err at
// the end and discards them.
package cancelcheck

import "context"

// Every is the number of bytes between two checks of the context: a few
// milliseconds of the slowest pass.
const Every = 256 << 10

// Pace checks the context for the passes of one call. It must not be used
// concurrently. A nil Pace is never over.
type Pace struct {
	ctx  context.Context
	left int
	over bool
}

// Of returns a Pace for passes that end with ctx.
func Of(ctx context.Context) *Pace { return &Pace{ctx: ctx, left: Every} }

// Over counts n further bytes, or work that costs as much, and reports whether
// the pass must stop.
func (p *Pace) Over(n int) bool {
	if p == nil {
		return false
	}
	if p.left -= n; p.left <= 0 && !p.over {
		p.left, p.over = Every, p.ctx.Err() != nil
	}
	return p.over
}

// Err returns the cause if the context has ended; otherwise nil.
func (p *Pace) Err() error {
	if p == nil {
		return nil
	}
	return context.Cause(p.ctx)
}
