package mcpkit

import (
	"context"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// bytesPerToken is the estimate of a token's length.
const bytesPerToken = 4

// Budget returns the size limit in bytes for the result of ctx's call: its
// tokens at 4 bytes each, at most MaxMessage.
func Budget(ctx context.Context) int {
	tokens, ok := wire.BudgetOf(ctx)
	if !ok || tokens <= 0 {
		tokens = DefaultMaxTokens
	}
	return min(tokens, MaxMessage/bytesPerToken) * bytesPerToken
}
