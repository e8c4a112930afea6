package control_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func issueToken(t *testing.T, tokens *control.CallbackTokens, ctx context.Context, caller call.Caller) *control.CallbackToken { //nolint:revive // t is first
	t.Helper()
	token, err := tokens.Issue(ctx, caller)
	require.NoError(t, err)
	return token
}

// One caller's agents are no reason why another has none, and all are bounded.
func TestTokensAreBounded(t *testing.T) {
	var tokens control.CallbackTokens
	defer tokens.Close()
	flood := func(c call.Caller) (issued []*control.CallbackToken) {
		for {
			token, err := tokens.Issue(t.Context(), c)
			if err != nil {
				require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err))
				return issued
			}
			token.Revoke(true) // nobody has entered
			issued = append(issued, token)
		}
	}
	// Sessions of one account are one caller, and so are the agents of an agent.
	mine := flood(call.Caller{EntryPoint: "http", ID: "a", Account: "me"})
	require.Len(t, mine, 128)
	require.Empty(t, flood(call.Caller{EntryPoint: "http", ID: "b", Account: "me", Depth: 2, Agent: "x"}))
	mine[0].Revoke(false)
	mine[0].Revoke(false)
	require.Len(t, flood(call.Caller{EntryPoint: "http", ID: "a", Account: "me"}), 1)
	all := 128
	for i := range 10 {
		all += len(flood(call.Caller{EntryPoint: "stdio", ID: string(rune('a' + i))}))
	}
	require.Equal(t, 1024, all)
}
