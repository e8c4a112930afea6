package wire

import "context"

type budgetKey struct{}

// WithBudget returns a context whose calls may answer with up to tokens tokens.
// With 0 or less, the default of mcpkit applies.
func WithBudget(ctx context.Context, tokens int) context.Context {
	return context.WithValue(ctx, budgetKey{}, tokens)
}

// BudgetOf returns the tokens of WithBudget. ok is false if ctx carries none.
func BudgetOf(ctx context.Context) (tokens int, ok bool) {
	tokens, ok = ctx.Value(budgetKey{}).(int)
	return tokens, ok
}
