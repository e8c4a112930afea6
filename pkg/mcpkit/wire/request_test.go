package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// addWho adds a tool that sends to entered, waits until leave is closed, and
// returns the client's name, roots capability and protocol version.
func addWho(h *server.MCPServer) (entered, leave chan struct{}) {
	entered, leave = make(chan struct{}, 100), make(chan struct{})
	tool(h, "who", func(ctx context.Context, _ mcp.CallToolRequest) string {
		entered <- struct{}{}
		<-leave
		session := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
		caps := session.GetClientCapabilities()
		return fmt.Sprintf("%s roots=%t version=%q", session.GetClientInfo().Name, caps.Roots != nil, server.RequestProtocolVersion(ctx))
	})
	return entered, leave
}

// Both eras on one connection: client data of a modern request must not appear
// in a legacy one, nor the reverse.
func TestErasDoNotMix(t *testing.T) {
	h := newServer()
	entered, leave := addWho(h)
	w := serve(t, h, wire.ServeOptions{})
	w.handshake(`{"roots":{"listChanged":true}}`)
	w.call(1, "who", `{}`)
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"who",%s}}`, modern("new"))
	w.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"who",%s}}`, modern("newer"))
	for range 3 {
		<-entered
	}
	close(leave)
	got := w.answers(3)
	require.Equal(t, `old roots=true version="2025-11-25"`, text(t, got["1"]))
	require.Equal(t, `new roots=false version="2026-07-28"`, text(t, got["2"]))
	require.Equal(t, `newer roots=false version="2026-07-28"`, text(t, got["3"]))
}

// A modern client starts without a handshake, or asks for the server's
// description.
func TestModern(t *testing.T) {
	w := serve(t, newServer(), wire.ServeOptions{})
	w.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%s}}`, modern("new"))
	require.Contains(t, string(w.answer(1).Result), "2026-07-28")
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{%s}}`, modern("new"))
	list := w.answer(2)
	for _, want := range []string{`"ttlMs"`, `"cacheScope"`, `"resultType":"complete"`, `"echo"`} {
		require.Contains(t, string(list.Result), want)
	}
	w.send(`{"jsonrpc":"2.0","id":3,"method":"ping","params":{%s}}`, modern("new"))
	require.Equal(t, jsonrpc.CodeMethodNotFound, errorCode(t, w.answer(3)), "ping is gone in this era")
}

// A legacy client may list the tools before it initializes.
func TestListBeforeInitialize(t *testing.T) {
	w := serve(t, newServer(), wire.ServeOptions{})
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	require.Contains(t, string(w.answer(1).Result), `"echo"`)
}

// Requests sent right after initialize are handled after it.
func TestPipelinedHandshake(t *testing.T) {
	h := newServer()
	_, leave := addWho(h)
	close(leave)
	w := serve(t, h, wire.ServeOptions{})
	w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"hasty","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who"}}`)
	got := w.answers(2)
	require.Equal(t, `hasty roots=false version="2024-11-05"`, text(t, got["1"]))
}

// A list change reaches both kinds of clients: a legacy client after its
// handshake, and each listen stream, tagged with its id as received.
func TestListChanged(t *testing.T) {
	h := newServer(server.WithToolCapabilities(true))
	w := serve(t, h, wire.ServeOptions{})
	w.send(`{"jsonrpc":"2.0","id":12345678901234567890,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, modern("a"))
	ack := w.next()
	require.Equal(t, "notifications/subscriptions/acknowledged", ack.Method)
	require.Contains(t, string(ack.Params), `"io.modelcontextprotocol/subscriptionId":12345678901234567890`)
	w.send(`{"jsonrpc":"2.0","id":"b","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, modern("b"))
	w.next()

	tool(h, "more", func(context.Context, mcp.CallToolRequest) string { return "" })
	got := map[string]bool{}
	for range 2 {
		m := w.next()
		require.Equal(t, "notifications/tools/list_changed", m.Method)
		got[string(m.Params)] = true
	}
	require.Len(t, got, 2, "one for each stream: %v", got)

	w.handshake(`{}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345678901234567890}}`)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.answer(1)
	tool(h, "evenmore", func(context.Context, mcp.CallToolRequest) string { return "" })
	m := w.next()
	require.Equal(t, "notifications/tools/list_changed", m.Method)
	require.NotContains(t, string(m.Params), "subscriptionId")
	rest, err := w.end()
	require.NoError(t, err)
	require.Empty(t, rest)
}

// A stream without subscriptions is closed at once, by a message with its id.
func TestEmptyListen(t *testing.T) {
	w := serve(t, newServer(), wire.ServeOptions{})
	w.send(`{"jsonrpc":"2.0","id":9007199254740993,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, modern("a"))
	require.Equal(t, "notifications/subscriptions/acknowledged", w.next().Method)
	m := w.answer(json.RawMessage("9007199254740993"))
	require.Contains(t, string(m.Result), `"io.modelcontextprotocol/subscriptionId":9007199254740993`)
}

// Many goroutines of one call may notify at once.
func TestConcurrentNotifications(t *testing.T) {
	h := newServer()
	const workers, each = 20, 200
	tool(h, "talk", func(ctx context.Context, _ mcp.CallToolRequest) string {
		var wg sync.WaitGroup
		var mu sync.Mutex
		failed := 0
		for range workers {
			wg.Go(func() {
				for range each {
					if server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/x", nil) != nil {
						mu.Lock()
						failed++
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		return fmt.Sprint(failed, " failed")
	})
	w := serve(t, h, wire.ServeOptions{})
	w.handshake(`{}`)
	w.call(1, "talk", `{}`)
	for range workers * each {
		require.Equal(t, "notifications/x", w.next().Method)
	}
	require.Equal(t, "0 failed", text(t, w.answer(1)))
}

// The server sends requests to a legacy client through mcp-go's interface.
func TestElicitationAndSampling(t *testing.T) {
	h := newServer(server.WithElicitation())
	tool(h, "ask", func(ctx context.Context, _ mcp.CallToolRequest) string {
		s := server.ServerFromContext(ctx)
		e, err := s.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "sure?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}})
		if err != nil {
			return err.Error()
		}
		r, err := server.ClientSessionFromContext(ctx).(server.SessionWithSampling).RequestSampling(ctx, mcp.CreateMessageRequest{})
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(e.Action, " ", r.Content.(mcp.TextContent).Text)
	})
	w := serve(t, h, wire.ServeOptions{})
	w.handshake(`{"elicitation":{},"sampling":{}}`)
	w.call(1, "ask", `{}`)
	m := w.next()
	require.Equal(t, "elicitation/create", m.Method)
	w.send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{}}}`, m.ID)
	m = w.next()
	require.Equal(t, "sampling/createMessage", m.Method)
	w.send(`{"jsonrpc":"2.0","id":%s,"result":{"role":"assistant","model":"m","content":{"type":"text","text":"yes"}}}`, m.ID)
	require.Equal(t, "accept yes", text(t, w.answer(1)))
}
