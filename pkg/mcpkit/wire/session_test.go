package wire_test

import (
	"context"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// Several clients of one server, each with its own handshake, are all notified
// of a change.
func TestSeveralClientsAtOnce(t *testing.T) {
	h := newServer()
	tool(h, "who", func(ctx context.Context, _ mcp.CallToolRequest) string {
		paths, err := wire.ClientRoots(ctx)
		if err != nil {
			return err.Error()
		}
		return toJSON(paths)
	})
	one := serve(t, h, wire.ServeOptions{})
	two := serve(t, h, wire.ServeOptions{Session: "two"})
	three := serve(t, h, wire.ServeOptions{Session: "three"})
	all := []*testClient{one, two, three}
	for _, w := range all {
		w.handshake("{}")
		w.call(1, "who", "{}")
	}
	for _, w := range all {
		require.Equal(t, "null", text(t, w.answer(1)))
	}
	h.SendNotificationToAllClients("notifications/x", nil)
	for _, w := range all {
		require.Equal(t, "notifications/x", w.next().Method)
	}
	_, err := serve(t, h, wire.ServeOptions{Session: "two"}).wait()
	require.ErrorContains(t, err, "registering the session")
	_, err = two.end()
	require.NoError(t, err)
	again := serve(t, h, wire.ServeOptions{Session: "two"})
	again.call(1, "who", "{}")
	require.Equal(t, "null", text(t, again.answer(1)))
}
