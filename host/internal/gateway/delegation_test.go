package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
)

// line is a client on a pair of streams.
type line struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error
}

// join serves one client more.
func join(t *testing.T, serve func(in io.Reader, out io.Writer) error) line {
	t.Helper()
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	l := line{t, feed, bufio.NewReader(answers), make(chan error, 1)}
	go func() {
		l.done <- serve(in, out)
		out.Close()
	}()
	t.Cleanup(func() { feed.Close() })
	return l
}

func (l line) say(message string) string {
	l.t.Helper()
	_, err := io.WriteString(l.in, message+"\n")
	require.NoError(l.t, err)
	answer, err := l.out.ReadString('\n')
	require.NoError(l.t, err)
	return answer
}

const greeting = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"c","version":"1"}}}`

// Clients that call on behalf of others, beside the one of stdio: each call is
// its caller's, with what the connection's own client can do.
func TestClientsOnErrands(t *testing.T) {
	seen := make(chan call.Caller, 1)
	ts := tools{"who": func(_ context.Context, req *call.Request) (*call.Result, error) {
		seen <- req.Caller
		return &call.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}}
	few := tools{"few": ts["who"]}
	var rooted []string
	g, err := gateway.New(gateway.Config{
		Name: "toolroom", Version: "1", Profile: func(name string) (gateway.Catalog, bool) { return few, name == "few" },
		OnRoots: func(paths []string) { rooted = append(rooted, fmt.Sprint(paths)) },
	}, ts, func(ctx context.Context, req *call.Request) (*call.Result, error) { return ts["who"](ctx, req) })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	as := func(c call.Caller) line {
		return join(t, func(in io.Reader, out io.Writer) error { return g.ServeAs(ctx, c, in, out, t.Logf) })
	}
	own := join(t, func(in io.Reader, out io.Writer) error { return g.ServeStdio(t.Context(), in, out, t.Logf) })
	one := as(call.Caller{EntryPoint: "stdio", ID: "stdio", Depth: 1, ModelTurn: "7"})
	two := as(call.Caller{EntryPoint: "http", ID: "http session 1", Depth: 3, Profile: "few"})
	for l, caps := range map[line]string{own: `{"roots":{}}`, one: `{"sampling":{}}`, two: `{}`} {
		l.say(fmt.Sprintf(greeting, caps))
	}
	ask := func(l line, tool string) call.Caller {
		require.Contains(t, l.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`"}}`), `"content":[]`)
		return <-seen
	}
	require.Equal(t, call.Caller{EntryPoint: "stdio", ID: "stdio", Depth: 1, ModelTurn: "7", Capabilities: json.RawMessage(`{"sampling":{}}`)}, ask(one, "who"))
	require.Equal(t, call.Caller{EntryPoint: "http", ID: "http session 1", Depth: 3, Profile: "few", Capabilities: json.RawMessage(`{}`)}, ask(two, "few"))
	require.Empty(t, rooted, "an agent's roots are not the client's")
	require.Contains(t, two.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who"}}`), "unknown tool")
	require.NoError(t, own.in.Close())
	require.NoError(t, <-own.done)

	require.NoError(t, two.in.Close())
	require.NoError(t, <-two.done)
	cancel() // the call that it was for has ended
	require.ErrorIs(t, <-one.done, context.Canceled)
	require.ErrorContains(t, g.ServeAs(t.Context(), call.Caller{Profile: "gone"}, nil, nil, nil), "profile gone no longer exists")
}

// What cannot be counted is no page of nothing.
func TestMetricsThatFail(t *testing.T) {
	g := open(t, fixtures())
	h := g.HTTP(gateway.HTTPConfig{Hosts: []string{"here"}, Metrics: func(io.Writer) error { return errors.New("no <luck>") }})
	defer h.Close(context.Background()) //nolint:errcheck // nothing was opened
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://here/metrics", nil))
	require.Equal(t, 500, w.Code)
	require.Contains(t, w.Body.String(), "luck")
}

// The bounds of who calls are those of what its calls start in turn, however
// deep: which tools, and whom they are counted for.
func TestAnErrandsBoundsGoOn(t *testing.T) {
	seen := make(chan call.Caller, 1)
	ts := tools{"who": func(_ context.Context, req *call.Request) (*call.Result, error) {
		seen <- req.Caller
		return &call.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}}
	g, err := gateway.New(gateway.Config{Name: "toolroom", Version: "1"}, ts, func(ctx context.Context, req *call.Request) (*call.Result, error) { return ts["who"](ctx, req) })
	require.NoError(t, err)
	as := call.Caller{EntryPoint: "http", ID: "c", User: "alice", Subject: "issuer alice", Token: func() string { return "t" }, Account: "http loopback", Depth: 1, Agent: "a", Tools: func(name string) bool { return name == "who" }}
	l := join(t, func(in io.Reader, out io.Writer) error { return g.ServeAs(t.Context(), as, in, out, t.Logf) })
	l.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who"}}`)
	got := <-seen
	require.Equal(t, "alice", got.User, "policy for a user applies to the user's agents")
	require.Equal(t, "issuer alice", got.Subject)
	require.Equal(t, "t", got.Token())
	require.Equal(t, "http loopback", got.Account)
	require.Equal(t, "a", got.Agent)
	require.NotNil(t, got.Tools)
	require.False(t, got.Tools("bash"))
}
