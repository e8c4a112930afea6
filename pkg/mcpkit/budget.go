package mcpkit

import (
	"context"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// bytesPerToken is the assumed average length of a token.
const bytesPerToken = 4

// Budget returns the size limit, in bytes, for the result of ctx's call: the
// call's limit in tokens at 4 bytes each, at most MaxMessage. Outside a call,
// the limit is DefaultMaxTokens.
func Budget(ctx context.Context) int {
	tokens, ok := wire.BudgetOf(ctx)
	if !ok || tokens <= 0 {
		tokens = DefaultMaxTokens
	}
	return min(tokens, MaxMessage/bytesPerToken) * bytesPerToken
}
