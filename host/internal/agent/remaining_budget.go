package agent

import (
	"context"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// RemainingBudget is the remaining part of a run's limits during a call, for tools that run
// agents: these may not use more. Earlier use by such tools is not subtracted. A nil
// field has no limit.
type RemainingBudget struct {
	Turns  *int     `json:"turns,omitempty"`
	Tokens *int     `json:"tokens,omitempty"`
	Cost   *float64 `json:"cost,omitempty"`
	MS     *int64   `json:"ms,omitempty"` // milliseconds until the time limit
}

// remainingBudgetKey is the context key of the remaining budget.
type remainingBudgetKey struct{}

// RemainingBudgetOf returns the remaining limits of the run that makes the call of ctx. It returns
// false without a run.
func RemainingBudgetOf(ctx context.Context) (RemainingBudget, bool) {
	left, ok := ctx.Value(remainingBudgetKey{}).(RemainingBudget)
	if rest, timed := call.TimeLeft(ctx); ok && timed {
		ms := rest.Milliseconds()
		left.MS = &ms
	}
	return left, ok
}

// withRemainingBudget returns the context for a call, with the remaining limits.
func (r *run) withRemainingBudget(ctx context.Context) context.Context {
	var left RemainingBudget
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
	return context.WithValue(ctx, remainingBudgetKey{}, left)
}
