package mcpkit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

func TestBudget(t *testing.T) {
	require.Equal(t, mcpkit.DefaultMaxTokens*4, mcpkit.Budget(t.Context()))
	require.Equal(t, 400, mcpkit.Budget(wire.WithBudget(t.Context(), 100)))
	require.Equal(t, mcpkit.DefaultMaxTokens*4, mcpkit.Budget(wire.WithBudget(t.Context(), 0)))
	require.Equal(t, mcpkit.MaxMessage, mcpkit.Budget(wire.WithBudget(t.Context(), 1<<40)))
}
