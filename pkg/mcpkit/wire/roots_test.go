package wire_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

func rootsServer() *server.MCPServer {
	h := newServer()
	tool(h, "roots", func(ctx context.Context, _ mcp.CallToolRequest) string {
		paths, err := wire.ClientRoots(ctx)
		return fmt.Sprintf("%q %v", paths, err)
	})
	return h
}

// One roots/list request serves all calls, even if every worker runs a call
// that waits for it; a changed list causes a new request.
func TestClientRoots(t *testing.T) {
	w := serve(t, rootsServer(), wire.ServeOptions{})
	w.handshake(`{"roots":{"listChanged":true}}`)
	const n = 3 * wire.DefaultMaxConcurrent
	for i := range n {
		w.call(i, "roots", `{}`)
	}
	ask := w.next()
	require.Equal(t, "roots/list", ask.Method)
	w.send(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///home/me/a%%20b","name":"x"},{"uri":"https://example.org/"},{"uri":"file://localhost/c/../d"}]}}`, ask.ID)
	for _, m := range w.answers(n) {
		require.Equal(t, `["/home/me/a b" "/d"] <nil>`, text(t, m))
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	w.call("again", "roots", `{}`)
	ask = w.next()
	require.Equal(t, "roots/list", ask.Method)
	w.send(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}`, ask.ID)
	require.Equal(t, `[] <nil>`, text(t, w.answer("again")))
	w.call("cached", "roots", `{}`)
	require.Equal(t, `[] <nil>`, text(t, w.answer("cached")))
}

// A change during the request makes its answer stale.
func TestClientRootsChangeWhileAsking(t *testing.T) {
	w := serve(t, rootsServer(), wire.ServeOptions{})
	w.handshake(`{"roots":{}}`)
	w.call(1, "roots", `{}`)
	first := w.next()
	w.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	w.send(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///old"}]}}`, first.ID)
	second := w.next()
	require.Equal(t, "roots/list", second.Method)
	require.NotEqual(t, string(first.ID), string(second.ID))
	w.send(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///new"}]}}`, second.ID)
	require.Equal(t, `["/new"] <nil>`, text(t, w.answer(1)))
}

// Clients that do not offer roots are not asked: a client without the
// capability, one before the end of its handshake, a modern one.
func TestClientRootsNotAsked(t *testing.T) {
	w := serve(t, rootsServer(), wire.ServeOptions{})
	w.call(1, "roots", `{}`)
	require.Equal(t, `[] <nil>`, text(t, w.answer(1)))
	w.handshake(`{}`)
	w.call(2, "roots", `{}`)
	require.Equal(t, `[] <nil>`, text(t, w.answer(2)))
	w.handshake(`{"roots":{}}`)
	w.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"roots",%s}}`, modern("new"))
	require.Equal(t, `[] <nil>`, text(t, w.answer(3)))
	paths, err := wire.ClientRoots(t.Context())
	require.NoError(t, err)
	require.Nil(t, paths)
}

// A client that refuses, or closes its side instead of answering, counts as one
// without roots, and calls do not wait for the five seconds.
func TestClientRootsRefused(t *testing.T) {
	w := serve(t, rootsServer(), wire.ServeOptions{})
	w.handshake(`{"roots":{}}`)
	w.call(1, "roots", `{}`)
	ask := w.next()
	w.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, ask.ID)
	require.Equal(t, `[] <nil>`, text(t, w.answer(1)))

	w = serve(t, rootsServer(), wire.ServeOptions{})
	w.handshake(`{"roots":{}}`)
	w.call(1, "roots", `{}`)
	require.Equal(t, "roots/list", w.next().Method)
	rest, err := w.end()
	require.NoError(t, err)
	require.Len(t, rest, 1)
	require.Equal(t, `[] <nil>`, text(t, rest[0]))
}

// Calls wait at most five seconds for a slow client, such as one that asks its
// user first; its late answer is used from then on.
func TestClientRootsLate(t *testing.T) {
	t.Parallel() // it waits for the five seconds
	w := serve(t, rootsServer(), wire.ServeOptions{})
	w.handshake(`{"roots":{}}`)
	w.call(1, "roots", `{}`)
	ask := w.next()
	require.Equal(t, `[] <nil>`, text(t, w.answer(1)))
	w.call(2, "roots", `{}`)
	require.Equal(t, `[] <nil>`, text(t, w.answer(2)), "without a second question or wait")
	w.send(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///late"}]}}`, ask.ID)
	id := 3
	require.Eventually(t, func() bool {
		w.call(id, "roots", `{}`)
		said := text(t, w.answer(id))
		id++
		return said == `["/late"] <nil>`
	}, maxTestWait, time.Millisecond)
}

// A call that is cancelled while it waits for the roots stops waiting.
func TestClientRootsCancelled(t *testing.T) {
	w := serve(t, rootsServer(), wire.ServeOptions{})
	w.handshake(`{"roots":{}}`)
	w.call(1, "roots", `{}`)
	ask := w.next()
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	w.send(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///x"}]}}`, ask.ID)
	w.call(2, "roots", `{}`)
	require.True(t, strings.HasPrefix(text(t, w.answer(2)), `["/x"]`))
}
