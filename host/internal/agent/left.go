package agent

import (
	"context"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// Left is what a run has left of its bounds while it makes a call, for tools that
// have agents work: these are to have no more. What such tools have used before is not
// taken off. A nil member has no bound.
type Left struct {
	Turns  *int     `json:"turns,omitempty"`
	Tokens *int     `json:"tokens,omitempty"`
	Cost   *float64 `json:"cost,omitempty"`
	MS     *int64   `json:"ms,omitempty"` // to the end of its time
}

type leftKey struct{}

// LeftOf is what the run has left that makes the call of ctx; false: no run does.
func LeftOf(ctx context.Context) (Left, bool) {
	left, ok := ctx.Value(leftKey{}).(Left)
	if rest, timed := call.Left(ctx); ok && timed {
		ms := rest.Milliseconds()
		left.MS = &ms
	}
	return left, ok
}

// withLeft is the context of a call.
func (r *run) withLeft(ctx context.Context) context.Context {
	var left Left
	b, used := r.cfg.Bounds, r.out.Usage
	if b.Turns > 0 {
		turns := max(0, b.Turns-r.out.Turns)
		left.Turns = &turns
	}
	if b.Tokens > 0 {
		tokens := max(0, b.Tokens-used.Input-used.Output)
		left.Tokens = &tokens
	}
	if b.Cost > 0 {
		cost := max(0, b.Cost-r.out.Cost)
		left.Cost = &cost
	}
	return context.WithValue(ctx, leftKey{}, left)
}
