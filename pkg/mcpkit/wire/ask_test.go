package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// Ask passes params and answers unchanged, and fails once the client is gone.
func TestAsk(t *testing.T) {
	h := newServer()
	tool(h, "ask", func(ctx context.Context, _ mcp.CallToolRequest) string {
		result, fault, err := wire.Ask(ctx, "elicitation/create", json.RawMessage(`{"n":1.0,"t":"<&>"}`))
		return fmt.Sprintf("%s|%s|%v", result, fault, err)
	})
	w := serve(t, h, wire.ServeOptions{})
	w.handshake(`{"elicitation":{}}`)
	for _, answer := range [][2]string{
		{`"result":{"x":1.0}`, `{"x":1.0}||<nil>`}, {`"error":{"code":-1,"message":"<no>"}`, `|{"code":-1,"message":"<no>"}|<nil>`},
	} {
		w.call("a", "ask", `{}`)
		m := w.next()
		require.Equal(t, "elicitation/create", m.Method)
		require.Equal(t, `{"n":1.0,"t":"<&>"}`, string(m.Params))
		w.send(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer[0])
		require.Equal(t, answer[1], text(t, w.answer("a")))
	}
	_, _, err := wire.Ask(t.Context(), "elicitation/create", nil)
	require.Error(t, err)
}
