package wire_test

import (
	"context"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// Defect 4: the cancellation of a queued call was lost.
func TestCancelledInTheQueueNeverRuns(t *testing.T) {
	h := newServer()
	g := addGate(h)
	w := serve(t, h, wire.ServeOptions{MaxConcurrent: 1})
	w.call(1, "gate", `{"n":"first"}`)
	g.waitRunning(t, 1)
	w.call("q\u00e9", "gate", `{"n":"cancelled"}`)
	w.call(3, "gate", `{"n":"third"}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q\u00e9"}}`)
	w.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	w.answer("ping") // the cancel has been read
	close(g.release)
	w.answers(2)
	require.Equal(t, []string{"third"}, g.waitRunning(t, 1))
	rest, err := w.end()
	require.NoError(t, err)
	require.Empty(t, rest, "no answer to a cancelled call")
}

// Defect 4: a cancelled call stops, and no answer is sent.
func TestCancelledWhileRunning(t *testing.T) {
	h := newServer()
	ended := make(chan error, 1)
	began := make(chan struct{})
	tool(h, "wait", func(ctx context.Context, _ mcp.CallToolRequest) string {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return "an answer nobody wants"
	})
	w := serve(t, h, wire.ServeOptions{})
	w.call(7, "wait", `{}`)
	<-began
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7.0,"reason":"changed my mind"}}`)
	select {
	case cause := <-ended:
		require.ErrorIs(t, cause, wire.ErrCancelled)
	case <-time.After(maxTestWait):
		require.Fail(t, "the call goes on")
	}
	w.call(7, "echo", `{"text":"the id is free again"}`)
	require.Equal(t, "the id is free again", text(t, w.answer(7)))
	rest, err := w.end()
	require.NoError(t, err)
	require.Empty(t, rest)
}

// A cancellation of an unknown request, or without an id, has no effect.
func TestStrayCancels(t *testing.T) {
	w := serve(t, newServer(), wire.ServeOptions{})
	for _, params := range []string{`{"requestId":99}`, `{"requestId":null}`, `{}`, `[]`, `null`, `{"requestId":{}}`} {
		w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":%s}`, params)
	}
	w.call(1, "echo", `{"text":"x"}`)
	w.answer(1)
}

// Defect 4: a request that reuses an id in flight is refused without an id, so
// that the first request does not appear to have failed.
func TestIDInFlight(t *testing.T) {
	h := newServer()
	g := addGate(h)
	w := serve(t, h, wire.ServeOptions{})
	w.call("same", "gate", `{"n":"1"}`)
	g.waitRunning(t, 1)
	w.send(`{"jsonrpc":"2.0","id":"s\u0061me","method":"ping"}`)
	m := w.next()
	require.Equal(t, "null", string(m.ID))
	require.Equal(t, jsonrpc.CodeInvalidRequest, errorCode(t, m))
	close(g.release)
	require.Equal(t, "released", text(t, w.answer("same")))
}

// Defect 4: mcp-go reads a numeric id as a float64.
func TestIDsAreEchoedByteForByte(t *testing.T) {
	w := serve(t, newServer(), wire.ServeOptions{})
	for _, id := range []string{`1`, `-7`, `0`, `12345678901234567890`, `9007199254740993`, `1.0`, `1e2`, `"a\u0062\/<>&"`, `""`, `"é"`} {
		for _, method := range []string{"ping", "tools/list", "no/such", "tools/call"} {
			w.send(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"name":"echo"}}`, id, method)
			require.Equal(t, id, string(w.next().ID), method)
		}
	}
}
