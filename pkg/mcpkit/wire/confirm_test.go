package wire_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// The user is asked if the client supports it; only an explicit yes agrees.
func TestConfirm(t *testing.T) {
	start := func() *testClient {
		h := newServer()
		tool(h, "push", func(ctx context.Context, _ mcp.CallToolRequest) string {
			agreed, asked, err := wire.Confirm(ctx, "Push to main?")
			return fmt.Sprintf("%t %t %v", agreed, asked, err != nil)
		})
		return serve(t, h, wire.ServeOptions{})
	}
	w := start()
	w.handshake(`{"elicitation":{}}`)
	id := 0
	for answer, want := range map[string]string{
		`"result":{"action":"accept","content":{"agree":true}}`:  "true true false",
		`"result":{"action":"accept","content":{"agree":false}}`: "false true false",
		`"result":{"action":"accept","content":{}}`:              "false true false",
		`"result":{"action":"decline"}`:                          "false true false",
		`"result":{"action":"cancel"}`:                           "false true false",
		`"error":{"code":-32601,"message":"no"}`:                 "false true true",
	} {
		id++
		w.call(id, "push", `{}`)
		ask := w.next()
		require.Equal(t, "elicitation/create", ask.Method)
		require.Contains(t, string(ask.Params), "Push to main?")
		require.NotContains(t, string(ask.Params), wire.MetaRequest)
		w.send(`{"jsonrpc":"2.0","id":%s,%s}`, ask.ID, answer)
		require.Equal(t, want, text(t, w.answer(id)), answer)
	}
	// A host that calls for several clients learns whom to ask.
	w.send(`{"jsonrpc":"2.0","id":"for-a","method":"tools/call","params":{"name":"push","arguments":{},"_meta":{"%s":"a"}}}`, wire.MetaClient)
	ask := w.next()
	require.Contains(t, string(ask.Params), `"_meta":{"`+wire.MetaRequest+`":"for-a"}`)
	w.send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, ask.ID)
	require.Equal(t, "false true false", text(t, w.answer("for-a")))

	w.send(`{"jsonrpc":"2.0","id":"m","method":"tools/call","params":{"name":"push",%s}}`, modern("new"))
	require.Equal(t, "false false false", text(t, w.answer("m")))

	w = start()
	w.handshake(`{"roots":{}}`)
	w.call(1, "push", `{}`)
	require.Equal(t, "false false false", text(t, w.answer(1)), "a client that cannot is not asked")
}
