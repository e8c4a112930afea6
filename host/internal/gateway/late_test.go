package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// inSession opens a legacy session, and returns what sends a call in it.
func inSession(t *testing.T, d door, caps string) func(line string) *bufio.Reader {
	t.Helper()
	_, _, header := d.post(t, hello(caps))
	session := header.Get("Mcp-Session-Id")
	return func(line string) *bufio.Reader {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/mcp", strings.NewReader(line))
		require.NoError(t, err)
		set(req, []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Authorization", "Bearer " + token, "Mcp-Session-Id", session})
		resp, err := d.Client().Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		return bufio.NewReader(resp.Body)
	}
}

// A message for a client after its response is refused: the response's
// memory belongs to others by then, and the host would end of it.
func TestNothingIsWrittenAfterAResponse(t *testing.T) {
	var late *call.Request
	g := open(t, tools{"progress": func(_ context.Context, req *call.Request) (*call.Result, error) {
		late = req
		req.OnNotify("notifications/progress", json.RawMessage(`{"progressToken":1,"progress":1}`)) // it is a stream
		return &call.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}})
	d := serve(t, g)
	stream := inSession(t, d, `{"elicitation":{}}`)(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress"}}`)
	require.Contains(t, event(t, stream), "progress")
	require.Contains(t, event(t, stream), `"result"`)
	_, err := stream.ReadString('\n')
	require.NoError(t, err)
	_, err = stream.ReadString('\n')
	require.Error(t, err, "the response is over")
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := late.Ask(ctx, "elicitation/create", json.RawMessage(`{}`))
		return err != nil && strings.Contains(err.Error(), "already started or ended")
	}, time.Minute, time.Millisecond)
	late.OnNotify("notifications/progress", json.RawMessage(`{}`))
}

// A request with an ended session is answered with an error, whatever its method: the
// stream of one would stay silent for ever.
func TestASessionThatIsOverIsOverForEveryMethod(t *testing.T) {
	d := serve(t, open(t, fixtures()))
	_, _, header := d.post(t, hello(`{}`))
	session := header.Get("Mcp-Session-Id")
	do := func(method, session string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, d.URL+"/mcp", nil)
		require.NoError(t, err)
		set(req, []string{"Accept", "text/event-stream", "Authorization", "Bearer " + token, "Mcp-Session-Id", session})
		resp, err := d.Client().Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, 200, do(http.MethodGet, session))
	require.Equal(t, 200, do(http.MethodDelete, session))
	for _, over := range []string{session, "of-another-run"} {
		require.Equal(t, 404, do(http.MethodGet, over))
		require.Equal(t, 404, do(http.MethodDelete, over))
	}
}

// What a client says about itself is kept, so there is a bound to it.
func TestHellosAreShort(t *testing.T) {
	d := serve(t, open(t, fixtures()))
	for n, want := range map[int]int{60 << 10: 200, 64 << 10: 413} {
		status, _, header := d.post(t, hello(`{"experimental":{"x":"`+strings.Repeat("x", n)+`"}}`))
		require.Equal(t, want, status)
		require.Equal(t, want == 200, header.Get("Mcp-Session-Id") != "")
	}
}

// A client is notified if its answer is no longer needed, so that its user need
// not decide.
func TestAQuestionIsWithdrawn(t *testing.T) {
	seen := make(chan struct{}) // the question, by the only one who is asked
	g := open(t, tools{"odd": func(ctx context.Context, req *call.Request) (*call.Result, error) {
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			<-seen
			cancel()
		}()
		_, err := req.Ask(ctx, "elicitation/create", json.RawMessage(`{}`))
		if err == nil {
			return nil, err
		}
		return &call.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}})
	line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"odd"}}`
	post := inSession(t, serve(t, g), `{"elicitation":{}}`)
	c := dial(t, g)
	c.send(t, hello(`{"elicitation":{}}`))
	c.next(t)
	c.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, begin := range []func() (next func() string){
		func() func() string {
			stream := post(line)
			return func() string { return event(t, stream) }
		},
		func() func() string {
			c.send(t, line)
			return func() string { return c.next(t) }
		},
	} {
		next := begin()
		question := next()
		require.Contains(t, question, `"method":"elicitation/create"`)
		seen <- struct{}{}
		require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+idOf(t, question)+`,"reason":"no longer needed"}}`, next())
		require.Contains(t, next(), `"result"`)
	}
}

// The completion of a URL elicitation is sent to the clients that can
// be asked so.
func TestTheEndOfAQuestionElsewhereIsTold(t *testing.T) {
	g, _ := openWorld(t)
	c := dial(t, g)
	c.send(t, hello(`{"elicitation":{"url":{}}}`))
	c.next(t)
	g.NotifyElicitationComplete("s", json.RawMessage(`{"elicitationId":"e","x":1.0}`))
	require.JSONEq(t, `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e","x":1.0}}`, c.next(t))
	c.send(t, hello(`{"elicitation":{"form":{}}}`))
	c.next(t)
	g.NotifyElicitationComplete("s", json.RawMessage(`{"elicitationId":"e"}`))
	c.send(t, `{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	require.Contains(t, c.next(t), `"id":5`)
}

// A server that cancels a question, or answers without waiting for the answer it
// asked, leaves nothing that a modern client would have to answer.
func TestAModernClientIsNotAskedWhatIsOver(t *testing.T) {
	answered := make(chan struct{})
	g := open(t, tools{"odd": func(ctx context.Context, req *call.Request) (*call.Result, error) {
		asking, cancel := context.WithCancel(ctx)
		go func() {
			<-answered
			cancel()
		}()
		if _, err := req.Ask(asking, "elicitation/create", json.RawMessage(`{"n":1}`)); err == nil {
			return nil, err
		}
		return &call.Result{Raw: json.RawMessage(`{"content":[],"n":1.0}`)}, nil
	}})
	d := serve(t, g)
	line, headers := modern(1, "tools/call", "odd", `"name":"odd"`, `{"elicitation":{}}`)
	_, body, _ := d.post(t, line, headers...)
	require.Contains(t, body, `"inputRequests":{"q1"`)
	var asked struct{ Result struct{ RequestState string } }
	require.NoError(t, json.Unmarshal([]byte(body), &asked))
	close(answered)
	for n := 2; strings.Contains(body, "input_required"); n++ { // at most until it has noticed
		require.Less(t, n, 10_000)
		line, headers = modern(n, "tools/call", "odd", `"name":"odd","inputResponses":{},"requestState":"`+asked.Result.RequestState+`"`, `{"elicitation":{}}`)
		_, body, _ = d.post(t, line, headers...)
		require.NoError(t, json.Unmarshal([]byte(body), &asked))
	}
	require.Contains(t, body, `"n":1.0`)
}
