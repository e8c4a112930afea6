// Package pace lets long passes over text in memory be cancelled.
//
//	p := pace.Of(ctx)
//	for at < len(text) {
//		if p.Over(n) { // n bytes were looked at
//			return
//		}
//	}
//	if err := p.Err(); err != nil { … }
//
// A pass that is over ends at once with whatever it has. Who began it asks
// Err in the end, and throws that away.
package pace

import "context"

// Every is after how many bytes a context is asked anew: a few milliseconds
// of the slowest pass.
const Every = 256 << 10

// Pace is of the passes of one call, one after the other. A nil Pace is never
// over.
type Pace struct {
	ctx  context.Context
	left int
	over bool
}

// Of returns the pace of passes that end with ctx.
func Of(ctx context.Context) *Pace { return &Pace{ctx: ctx, left: Every} }

// Over reports whether to give up, after n bytes more, or work that is worth
// as much.
func (p *Pace) Over(n int) bool {
	if p == nil {
		return false
	}
	if p.left -= n; p.left <= 0 && !p.over {
		p.left, p.over = Every, p.ctx.Err() != nil
	}
	return p.over
}

// Err returns why the passes are over, or would be now; nil if they are not.
func (p *Pace) Err() error {
	if p == nil {
		return nil
	}
	return context.Cause(p.ctx)
}
