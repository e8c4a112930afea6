package wire

import "context"

// budgetKey is the context key of the value of WithBudget.
type budgetKey struct{}

// WithBudget returns a context whose call may return a result of up to tokens
// tokens of 4 bytes. With 0 or less, mcpkit's default applies.
func WithBudget(ctx context.Context, tokens int) context.Context {
	return context.WithValue(ctx, budgetKey{}, tokens)
}

// BudgetOf returns the tokens of WithBudget. ok is false if ctx has none.
func BudgetOf(ctx context.Context) (tokens int, ok bool) {
	tokens, ok = ctx.Value(budgetKey{}).(int)
	return tokens, ok
}
