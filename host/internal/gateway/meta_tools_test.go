package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// standing is a catalogue in which find and run stand in for other tools.
type standing struct{ gateway.Catalog }

func (standing) IsMetaTool(name string) bool { return name == "find" || name == "run" }

func (s standing) CallMetaTool(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, *call.Tool, json.RawMessage, error) {
	if name == "find" {
		return json.RawMessage(`{"content":[],"given":` + string(arguments) + `}`), nil, nil, nil
	}
	var a struct {
		Tool string
		With json.RawMessage
	}
	if err := json.Unmarshal(arguments, &a); err != nil {
		return nil, nil, nil, err
	}
	tool, ok := s.Lookup(ctx, a.Tool)
	if !ok {
		return nil, nil, nil, toolerr.New(toolerr.ToolNotFound, "no %s", a.Tool)
	}
	return nil, tool, a.With, nil
}

func openStanding(t *testing.T, behind gateway.Catalog, handler call.Handler) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(gateway.Config{Name: "toolroom", Version: "1"}, standing{behind}, handler)
	require.NoError(t, err)
	return g
}

// Of a call of a tool that stands in for others the handler sees the call of
// the one that is meant, with all else that the request had.
func TestACallOfAStandInIsTheCallOfWhatIsMeant(t *testing.T) {
	ts := fixtures()
	g := openStanding(t, ts, ts.handle)
	d := serve(t, g)
	both := func(params, want string) {
		t.Helper()
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
		_, body, _ := d.post(t, line)
		require.Contains(t, body, want)
		answers, _ := talk(t, g, line)
		require.Contains(t, answers["1"], want)
	}
	quoted, err := json.Marshal(`{"name":"params", "arguments":{"n": 1.0,"s":"\u003c"},"odd":[ ],"_meta":{"x":1.0}}`)
	require.NoError(t, err)
	both(`{"name":"run", "arguments":{"tool":"params","with":{"n": 1.0,"s":"\u003c"}},"odd":[ ],"_meta":{"x":1.0}}`, string(quoted))
	both(`{"name":"run","arguments":{"tool":"odd","with":{}}}`, `"result":`+odd+`}`)
	both(`{"name":"run","arguments":{"tool":"rpcerror","with":{}}}`, `"error":{"code":-32602,"message":"<bad>","data":[1.0]}}`)
	both(`{"name":"run","arguments":{"tool":"offline","with":{}}}`, `SERVER_OFFLINE: the server exited`)
	both(`{"name":"run","arguments":{"tool":"nobody","with":{}}}`, `"result":{"content":[{"type":"text","text":"TOOL_NOT_FOUND: no nobody"}],"isError":true,"_meta":{"toolroom/code":"TOOL_NOT_FOUND"}`)
	both(`{"name":"find","arguments":{"q": 1.0}}`, `"result":{"content":[],"given":{"q": 1.0}}}`)
	both(`{"name":"find"}`, `"given":{}}}`)
	both(`{"name":"find","arguments":null}`, `"given":{}}}`)

	// A modern client's header names the tool that it calls.
	line, headers := modern(1, "tools/call", "run", `"name":"run","arguments":{"tool":"odd","with":{}}`, `{}`)
	_, body, _ := d.post(t, line, headers...)
	require.Contains(t, body, strings.TrimSuffix(odd, "}")+`,"resultType":"complete"}`)
}

func TestProgressAndCancelReachWhatIsMeant(t *testing.T) {
	ts := fixtures()
	started, ended := make(chan struct{}), make(chan error)
	ts["wait"] = func(ctx context.Context, _ *call.Request) (*call.Result, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	g := openStanding(t, ts, ts.handle)
	_, body, _ := serve(t, g).post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"tool":"progress","with":{}},"_meta":{"progressToken":7}}}`)
	require.Equal(t, 2, strings.Count(body, `"method":"notifications/progress","params":{"progressToken":7,`), body)

	in, feed := io.Pipe()
	done := make(chan error)
	go func() { done <- g.ServeStdio(t.Context(), in, io.Discard, t.Logf) }()
	io.WriteString(feed, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"tool":"wait","with":{}}}}`+"\n") //nolint:errcheck // seen below
	<-started
	io.WriteString(feed, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n") //nolint:errcheck // likewise
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, feed.Close())
	require.NoError(t, <-done)
}

// What a server asks on the way reaches the client in rounds, each of which
// is a call of the tool that stands in.
func TestAQuestionReachesWhoCalledAStandIn(t *testing.T) {
	w := &world{}
	d := serve(t, openStanding(t, w, w.handle))
	params := `"name":"run","arguments":{"tool":"ask","with":{"a":[1.0]}}`
	line, headers := modern(1, "tools/call", "run", params, `{"elicitation":{}}`)
	_, body, _ := d.post(t, line, headers...)
	var asked struct{ Result struct{ RequestState string } }
	require.NoError(t, json.Unmarshal([]byte(body), &asked))
	require.NotEmpty(t, asked.Result.RequestState, body)
	answer := `,"inputResponses":{"q1":{"action":"accept"}},"requestState":"` + asked.Result.RequestState + `"`
	line, headers = modern(2, "tools/call", "run", strings.Replace(params, "1.0", "2", 1)+answer, `{"elicitation":{}}`)
	_, body, _ = d.post(t, line, headers...)
	require.Contains(t, body, "requestState belongs to another request")
	line, headers = modern(3, "tools/call", "run", params+answer, `{"elicitation":{}}`)
	_, body, _ = d.post(t, line, headers...)
	require.Contains(t, body, `"answered":{"action":"accept"}`)
	require.Equal(t, []string{`tools/call {"name":"ask","arguments":{"a":[1.0]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`}, w.messages())
}
