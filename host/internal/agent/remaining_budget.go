package agent

import (
	"context"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// Left is the part of a run's bounds that remains during a call, for tools that run
// agents: these may not use more. Earlier use by such tools is not subtracted. A nil
// member has no bound.
type Left struct {
	Turns  *int     `json:"turns,omitempty"`
	Tokens *int     `json:"tokens,omitempty"`
	Cost   *float64 `json:"cost,omitempty"`
	MS     *int64   `json:"ms,omitempty"` // to the end of its time
}

type leftKey struct{}

// LeftOf returns what remains of the run that makes the call of ctx. ok is false
// without a run.
func LeftOf(ctx context.Context) (Left, bool) {
	left, ok := ctx.Value(leftKey{}).(Left)
	if rest, timed := call.TimeLeft(ctx); ok && timed {
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
