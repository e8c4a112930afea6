package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// A call that waits for the answers of a client that never comes back ends
// with the gateway, and Close waits for it; a later call ends at once.
func TestCloseEndsParkedCalls(t *testing.T) {
	mcpkittest.NoLeaks(t, "github.com/toolroom-mcp/toolroom/host/internal/gateway")
	ended := make(chan error, 2)
	g := open(t, tools{"ask": func(ctx context.Context, req *call.Request) (*call.Result, error) {
		_, err := req.Ask(ctx, "elicitation/create", json.RawMessage(`{"n":1}`))
		ended <- errors.Join(err, context.Cause(ctx))
		return nil, err
	}})
	d := serve(t, g)
	post := func(id int) string {
		line, headers := modern(id, "tools/call", "ask", `"name":"ask"`, `{"elicitation":{}}`)
		_, body, _ := d.post(t, line, headers...)
		return body
	}
	require.Contains(t, post(1), "input_required")
	require.Empty(t, ended)
	g.Close()
	require.Len(t, ended, 1, "Close has waited")
	require.ErrorContains(t, <-ended, "the host is stopping")
	require.NotContains(t, post(2), "input_required")
	require.ErrorContains(t, <-ended, "the host is stopping")
}

// Open listen streams end with the gateway.
func TestCloseEndsListenStreams(t *testing.T) {
	mcpkittest.NoLeaks(t, "github.com/toolroom-mcp/toolroom/host/internal/gateway.(*Gateway).listen")
	g, _ := openWorld(t)
	c := dial(t, g)
	line, _ := modern(1, "subscriptions/listen", "", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}`, `{}`)
	c.send(t, line)
	require.Contains(t, c.next(t), "acknowledged")
	g.Close()
}
