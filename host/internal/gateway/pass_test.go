package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
)

// world is a catalogue with one of everything, and what is behind it: the
// tool "ask" asks its client and says what it answered, and so does the prompt
// "s__p"; other messages are answered with themselves.
type world struct {
	mu   sync.Mutex
	seen []string // messages, as "METHOD PARAMS"
	logs []string // levels
	last call.Caller

	eager func(uri string) // unless nil, told of each subscription
}

func (*world) Lookup(_ context.Context, name string) (*call.Tool, bool) {
	return &call.Tool{Name: name, Original: name}, name == "ask" || name == "log" || name == "state"
}

func (*world) List(_ context.Context, kind call.ListKind, modern bool) json.RawMessage {
	tail := "}"
	if modern {
		tail = `,"ttlMs":0,"cacheScope":"private","resultType":"complete"}`
	}
	return json.RawMessage(`{"` + string(kind) + `":[{"odd":1.0}]` + tail)
}

func (*world) Locate(_ context.Context, kind call.ListKind, name string) (server, original string, ok bool) {
	switch {
	case kind == call.Prompts && name == "s__p":
		return "s", "p", true
	case kind != call.Prompts && strings.HasPrefix(name, "r:"):
		return "s", "own:" + name, true
	}
	return "", "", false
}

func (w *world) note(method string, params json.RawMessage, caller call.Caller) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, method+" "+string(params))
	w.last = caller
}

func (w *world) messages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.seen...)
}

const question = `{"message":"<who?>","requestedSchema":{"type":"object","x":1.0}}`

func questionLimit(ctx context.Context, ask call.Ask) (json.RawMessage, error) {
	if ask == nil {
		return json.RawMessage(`{"content":[],"asked":"nobody"}`), nil
	}
	answer, err := ask(ctx, "elicitation/create", json.RawMessage(question))
	var refused *call.MCPError
	switch {
	case errors.As(err, &refused):
		return json.RawMessage(`{"content":[],"refused":` + string(refused.Object) + `}`), nil
	case err != nil:
		return nil, err
	}
	return json.RawMessage(`{"content":[],"answered":` + string(answer) + `}`), nil
}

func (w *world) handle(ctx context.Context, req *call.Request) (*call.Result, error) {
	w.note("tools/call", req.Params, req.Caller)
	switch req.Tool.Name {
	case "log":
		for _, level := range []string{"debug", "error"} {
			req.OnNotify("notifications/message", json.RawMessage(`{"level":"`+level+`","data":1.0}`))
		}
		return &call.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	case "state": // a modern server's
		if strings.Contains(string(req.Params), `"requestState":"mine<>"`) {
			return &call.Result{Raw: json.RawMessage(`{"content":[],"resultType":"complete"}`)}, nil
		}
		return &call.Result{Raw: json.RawMessage(`{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"mine<>"}`)}, nil
	}
	raw, err := questionLimit(ctx, req.Ask)
	return &call.Result{Raw: raw}, err
}

func (w *world) forward(ctx context.Context, m *call.UpstreamRequest) (json.RawMessage, error) {
	w.note(m.Method, m.Params, m.Caller)
	if m.Method == "resources/subscribe" && w.eager != nil {
		var p struct{ URI string }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return nil, err
		}
		w.eager(p.URI)
	}
	if m.Method == "prompts/get" {
		return questionLimit(ctx, m.Ask)
	}
	return json.RawMessage(`{"got":` + string(m.Params) + `}`), nil
}

func openWorld(t *testing.T) (*gateway.Gateway, *world) {
	t.Helper()
	w := &world{}
	g, err := gateway.New(gateway.Config{
		Name: "toolroom", Version: "1", Forward: w.forward,
		OnLogLevel: func(level string) { w.logs = append(w.logs, level) },
		Profile:    func(name string) (gateway.Catalog, bool) { return fixtures(), name == "few" },
	}, w, w.handle)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g, w
}

// modern is a modern request's line, and its headers.
func modern(id int, method, name, params, caps string) (string, []string) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + caps + `}`
	if params != "" {
		meta = params + "," + meta
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, meta), modernHeaders(method, name)
}

func TestListsOfAllKinds(t *testing.T) {
	g, _ := openWorld(t)
	d := serve(t, g)
	for method, kind := range map[string]call.ListKind{
		"tools/list": call.Tools, "resources/list": call.Resources, "resources/templates/list": call.Templates, "prompts/list": call.Prompts,
	} {
		_, body, _ := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+string((*world)(nil).List(t.Context(), kind, false))+`}`, body)
		line, headers := modern(1, method, "", "", `{}`)
		_, body, _ = d.post(t, line, headers...)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+string((*world)(nil).List(t.Context(), kind, true))+`}`, body)
	}
	line, headers := modern(1, "server/discover", "", "", `{}`)
	_, body, _ := d.post(t, line, headers...)
	for _, capability := range []string{`"tools":`, `"resources":`, `"prompts":`, `"completions":`} {
		require.Contains(t, body, capability)
	}
}

func TestMessagesReachTheirServersUnderTheirOwnNames(t *testing.T) {
	g, w := openWorld(t)
	d := serve(t, g)
	for _, c := range []struct{ method, name, params, want string }{
		{"resources/read", "r:1", `"x":1.0,"uri" : "r:1"`, `"x":1.0,"uri" : "own:r:1"`},
		{"prompts/get", "s__p", `"name":"s__p","arguments":{"a":"<b>"}`, `"name":"p","arguments":{"a":"<b>"}`},
		{"completion/complete", "", `"ref":{"type":"ref/prompt","name":"s__p","y":2.0},"argument":{"name":"a","value":"v"}`,
			`"ref":{"type":"ref/prompt","name":"p","y":2.0},"argument":{"name":"a","value":"v"}`},
		{"completion/complete", "", `"ref":{"type":"ref/resource","uri":"r:{id}"},"argument":{"name":"a","value":"v"}`,
			`"ref":{"type":"ref/resource","uri":"own:r:{id}"},"argument":{"name":"a","value":"v"}`},
	} {
		_, body, _ := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"`+c.method+`","params":{`+c.params+`}}`)
		require.NotContains(t, body, "error", c.method)
		seen := w.messages()
		require.Equal(t, c.method+" {"+c.want+"}", seen[len(seen)-1])
		if c.method == "resources/read" {
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"got":{`+c.want+`}}}`, body)
		}
		line, headers := modern(1, c.method, c.name, c.params, `{}`)
		_, body, _ = d.post(t, line, headers...)
		require.Contains(t, body, `"resultType":"complete"`)
		require.Equal(t, c.method == "resources/read", strings.Contains(body, `"ttlMs":0,"cacheScope":"private"`), body)
	}
	for _, c := range []struct{ method, params, legacy, modern string }{
		{"resources/read", `"uri":"no:1"`, `"code":-32002`, `"code":-32602`},
		{"prompts/get", `"name":"no"`, `"code":-32602`, `"code":-32602`},
	} {
		_, body, _ := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"`+c.method+`","params":{`+c.params+`}}`)
		require.Contains(t, body, c.legacy)
		_, name, _ := strings.Cut(c.params, ":")
		line, headers := modern(1, c.method, strings.Trim(name, `"`), c.params, `{}`)
		_, body, _ = d.post(t, line, headers...)
		require.Contains(t, body, c.modern)
	}
}

// A modern client is asked by a result, and answers with its next request.
func TestAModernClientIsAskedInRounds(t *testing.T) {
	g, _ := openWorld(t)
	d := serve(t, g)
	for _, c := range []struct{ method, name, params, other string }{
		{"tools/call", "ask", `"name":"ask","arguments":{"b":2,"a":[1.0]}`, `"name":"ask","arguments":{"b":2,"a":[1]}`},
		{"prompts/get", "s__p", `"name":"s__p"`, `"name":"s__p","arguments":{"c":"1"}`},
	} {
		first, headers := modern(1, c.method, c.name, c.params, `{"elicitation":{}}`)
		_, body, _ := d.post(t, first, headers...)
		require.Contains(t, body, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"q1":{"method":"elicitation/create","params":`+question+`}},"requestState":"`)
		var asked struct{ Result struct{ RequestState string } }
		require.NoError(t, json.Unmarshal([]byte(body), &asked))
		state := asked.Result.RequestState
		round := func(id int, params, state string) (int, string) {
			line, headers := modern(id, c.method, c.name, params+`,"inputResponses":{"q1":{"action":"accept","x":1.0},"other":{}},"requestState":"`+state+`"`, `{"elicitation":{}}`)
			status, body, _ := d.post(t, line, headers...)
			return status, body
		}
		const refused = `"error":{"code":-32602,"message":"invalid params: requestState belongs to another request, or has expired; repeat the request without it"}`
		forged := []byte(state)
		forged[len(forged)/2] ^= 1
		for what, bad := range map[string][2]string{
			"forged": {c.params, string(forged)}, "longer": {c.params, state + "A"}, "empty": {c.params, ""},
			"of other arguments": {c.other, state},
		} {
			status, body := round(2, bad[0], bad[1])
			require.Contains(t, body, refused, what)
			require.Equal(t, 400, status)
		}
		// The same arguments in another order are the same.
		params := strings.Replace(c.params, `{"b":2,"a":[1.0]}`, `{ "a":[1.0], "b":2}`, 1)
		_, body = round(3, params, state)
		require.Equal(t, `{"jsonrpc":"2.0","id":3,"result":{"content":[],"answered":{"action":"accept","x":1.0},"resultType":"complete"}}`, body)
		_, body = round(4, params, state)
		require.Contains(t, body, refused, "answered once")
	}
	// Who cannot answer is not asked.
	line, headers := modern(1, "tools/call", "ask", `"name":"ask"`, `{"sampling":{}}`)
	_, body, _ := d.post(t, line, headers...)
	require.Contains(t, body, `"refused":{"code":-32601`)
	line, headers = modern(1, "tools/call", "ask", `"name":"ask"`, `{}`)
	_, body, _ = d.post(t, line, headers...)
	require.Contains(t, body, `"asked":"nobody"`)
}

// What a modern server wants back is sealed on its way, and open to it alone.
func TestAServersOwnStateIsSealed(t *testing.T) {
	g, w := openWorld(t)
	d := serve(t, g)
	line, headers := modern(1, "tools/call", "state", `"name":"state"`, `{"roots":{}}`)
	_, body, _ := d.post(t, line, headers...)
	require.Contains(t, body, `"inputRequests":{"k":{"method":"roots/list"}}`)
	require.NotContains(t, body, "mine")
	var asked struct{ Result struct{ RequestState string } }
	require.NoError(t, json.Unmarshal([]byte(body), &asked))
	line, headers = modern(2, "tools/call", "state", `"name":"state","inputResponses":{"k":{"roots":[]}},"requestState":"`+asked.Result.RequestState+`"`, `{"roots":{}}`)
	_, body, _ = d.post(t, line, headers...)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{"content":[],"resultType":"complete"}}`, body)
	seen := w.messages()
	require.Contains(t, seen[len(seen)-1], `"inputResponses":{"k":{"roots":[]}}`)

	line, headers = modern(3, "tools/call", "ask", `"name":"ask","requestState":"`+asked.Result.RequestState+`"`, `{"roots":{}}`)
	_, body, _ = d.post(t, line, headers...)
	require.Contains(t, body, "requestState belongs to another request", "it is of another tool")
	line, headers = modern(4, "tools/call", "state", `"name":"state","requestState":"mine<>"`, `{"roots":{}}`)
	_, body, _ = d.post(t, line, headers...)
	require.Contains(t, body, "requestState belongs to another request", "it was never sealed")
}

// wire is a client on the stdio door.
type wire struct {
	in  *io.PipeWriter
	out *bufio.Reader
}

func dial(t *testing.T, g *gateway.Gateway) wire {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- g.ServeStdio(context.Background(), inRead, outWrite, t.Logf) }()
	t.Cleanup(func() {
		inWrite.Close()
		go io.Copy(io.Discard, outRead)
		require.NoError(t, <-done)
		outWrite.Close()
	})
	return wire{inWrite, bufio.NewReader(outRead)}
}

func (w wire) send(t *testing.T, line string) {
	t.Helper()
	_, err := io.WriteString(w.in, line+"\n")
	require.NoError(t, err)
}

func (w wire) next(t *testing.T) string {
	t.Helper()
	line, err := w.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSuffix(line, "\n")
}

func hello(caps string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + caps + `,"clientInfo":{"name":"c","version":"1"}}}`
}

func idOf(t *testing.T, message string) string {
	t.Helper()
	var m struct{ ID json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(message), &m))
	return string(m.ID)
}

func TestALegacyClientOnStdioIsAskedByARequest(t *testing.T) {
	g, w := openWorld(t)
	c := dial(t, g)
	c.send(t, hello(`{"elicitation":{"form":{}},"experimental":{"x":1.0}}`))
	require.Contains(t, c.next(t), `"protocolVersion":"2025-11-25"`)
	c.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`)
	asked := c.next(t)
	require.Contains(t, asked, `"method":"elicitation/create","params":`+question+`}`)
	c.send(t, `{"jsonrpc":"2.0","id":`+idOf(t, asked)+`,"result":{"action":"decline","y":2.0}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"content":[],"answered":{"action":"decline","y":2.0}}}`, c.next(t))
	require.Equal(t, `{"elicitation":{"form":{}},"experimental":{"x":1.0}}`, string(w.last.Capabilities), "as received")

	c.send(t, `{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"s__p"}}`)
	asked = c.next(t)
	c.send(t, `{"jsonrpc":"2.0","id":`+idOf(t, asked)+`,"error":{"code":-1,"message":"<no>","data":1.0}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{"content":[],"refused":{"code":-1,"message":"<no>","data":1.0}}}`, c.next(t))

	// A modern request on the same connection is asked in rounds.
	line, _ := modern(3, "tools/call", "ask", `"name":"ask"`, `{"elicitation":{}}`)
	c.send(t, line)
	require.Contains(t, c.next(t), `"id":3,"result":{"resultType":"input_required"`)
}

func TestALegacyClientOverHTTPIsAskedOnTheStreamOfItsRequest(t *testing.T) {
	g, _ := openWorld(t)
	d := serve(t, g)
	_, _, header := d.post(t, hello(`{"elicitation":{}}`))
	session := header.Get("Mcp-Session-Id")
	require.NotEmpty(t, session)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`))
	require.NoError(t, err)
	set(req, []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Authorization", "Bearer " + token, "Mcp-Session-Id", session})
	resp, err := d.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	stream := bufio.NewReader(resp.Body)
	asked := event(t, stream)
	require.Contains(t, asked, `"method":"elicitation/create","params":`+question+`}`)
	answer := `{"jsonrpc":"2.0","id":` + idOf(t, asked) + `,"result":{"action":"accept"}}`

	_, _, header = d.post(t, hello(`{}`))
	d.post(t, answer, "Mcp-Session-Id", header.Get("Mcp-Session-Id")) // another's session
	d.post(t, answer)                                                 // and none
	status, body, _ := d.post(t, strings.Replace(answer, "accept", "decline", 1), "Mcp-Session-Id", session)
	require.Equal(t, 202, status, body)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"content":[],"answered":{"action":"decline"}}}`, event(t, stream))
}

// event returns the next message of a stream.
func event(t *testing.T, stream *bufio.Reader) string {
	t.Helper()
	for {
		line, err := stream.ReadString('\n')
		require.NoError(t, err)
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
	}
}

func TestLogMessagesAreThoseThatTheClientWants(t *testing.T) {
	g, w := openWorld(t)
	c := dial(t, g)
	note := func(level string) string {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":1.0}}`
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log"}}`
	done := `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	c.send(t, hello(`{}`))
	c.next(t)
	c.send(t, call) // the server decides
	require.Equal(t, []string{note("debug"), note("error"), done}, []string{c.next(t), c.next(t), c.next(t)})
	c.send(t, `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"warning"}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{}}`, c.next(t))
	require.Equal(t, []string{"warning"}, w.logs)
	c.send(t, call)
	require.Equal(t, []string{note("error"), done}, []string{c.next(t), c.next(t)})
	g.NotifyLog(json.RawMessage(`{"level":"info","data":2}`), nil)
	g.NotifyLog(json.RawMessage(`{"level":"alert","data":{"b":1.0,"a":1}}`), nil)
	require.Contains(t, c.next(t), `"data":{"b":1.0,"a":1}`)
	// A modern client gets none unless it says from which level on.
	line, _ := modern(3, "tools/call", "log", `"name":"log"`, `{}`)
	c.send(t, line)
	require.Contains(t, c.next(t), `"id":3,`)
	line, _ = modern(4, "tools/call", "log", `"name":"log"`, `{},"io.modelcontextprotocol/logLevel":"debug"`)
	c.send(t, line)
	require.Equal(t, []string{note("debug"), note("error")}, []string{c.next(t), c.next(t)})
}

func TestSubscriptions(t *testing.T) {
	g, w := openWorld(t)
	c := dial(t, g)
	c.send(t, hello(`{}`))
	c.next(t)
	c.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send(t, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"r:1"}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, c.next(t))
	c.send(t, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"no:1"}}`)
	require.Contains(t, c.next(t), `-32002`)
	line, _ := modern(3, "subscriptions/listen", "", `"notifications":{"resourceSubscriptions":["r:1","r:2"]}`, `{}`)
	c.send(t, line)
	require.Contains(t, c.next(t), "acknowledged")
	require.Eventually(t, func() bool { // only then
		return strings.Contains(strings.Join(w.messages(), "\n"), `resources/subscribe {"uri":"own:r:2"}`)
	}, time.Minute, time.Millisecond)
	g.NotifyResourceUpdated("s", json.RawMessage(`{"uri":"own:r:3"}`))     // nobody's
	g.NotifyResourceUpdated("other", json.RawMessage(`{"uri":"own:r:1"}`)) // another server's
	g.NotifyResourceUpdated("s", json.RawMessage(`{"uri":"own:r:1","title":"t"}`))
	told := []string{c.next(t), c.next(t)}
	require.ElementsMatch(t, []bool{true, false}, []bool{strings.Contains(told[0], "subscriptionId"), strings.Contains(told[1], "subscriptionId")})
	for _, note := range told {
		require.Contains(t, note, `"method":"notifications/resources/updated"`)
		require.Contains(t, note, `"uri":"r:1"`)
		require.Contains(t, note, `"title":"t"`)
	}
	c.send(t, `{"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"r:1"}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":4,"result":{}}`, c.next(t))
	require.NotContains(t, w.messages(), `resources/unsubscribe {"uri":"own:r:1"}`, "the stream still wants it")
	c.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	require.Eventually(t, func() bool {
		seen := strings.Join(w.messages(), "\n")
		return strings.Contains(seen, `resources/unsubscribe {"uri":"own:r:1"}`) && strings.Contains(seen, `resources/unsubscribe {"uri":"own:r:2"}`)
	}, time.Minute, time.Millisecond)
	g.NotifyResourceUpdated("s", json.RawMessage(`{"uri":"own:r:1"}`))
	for _, kind := range []call.ListKind{call.Tools, call.Templates, call.Prompts} {
		g.NotifyListChanged(kind)
	}
	for _, method := range []string{"tools", "resources", "prompts"} {
		require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/`+method+`/list_changed"}`, c.next(t))
	}
}

// The acknowledgement is the first message of a stream, also when the server
// tells of a change as soon as it is asked.
func TestAListenStreamBeginsWithItsAcknowledgement(t *testing.T) {
	g, w := openWorld(t)
	w.eager = func(uri string) { g.NotifyResourceUpdated("s", json.RawMessage(`{"uri":"`+uri+`"}`)) }
	d := serve(t, g)
	line, headers := modern(1, "subscriptions/listen", "", `"notifications":{"resourceSubscriptions":["r:1"]}`, `{}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/mcp", strings.NewReader(line))
	require.NoError(t, err)
	set(req, append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Authorization", "Bearer " + token}, headers...))
	resp, err := d.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	stream := bufio.NewReader(resp.Body)
	require.Contains(t, event(t, stream), "notifications/subscriptions/acknowledged")
	note := event(t, stream)
	require.Contains(t, note, "notifications/resources/updated")
	require.Contains(t, note, `"io.modelcontextprotocol/subscriptionId":1`)

	c := dial(t, g)
	c.send(t, line)
	require.Contains(t, c.next(t), "notifications/subscriptions/acknowledged")
	require.Contains(t, c.next(t), "notifications/resources/updated")
}

func TestAProfileHasItsOwnPath(t *testing.T) {
	g, _ := openWorld(t)
	d := serve(t, g)
	at := func(path, body string, headers ...string) (int, string, http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		set(req, append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Authorization", "Bearer " + token}, headers...))
		return d.do(t, req)
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	_, body, _ := at("/mcp/few", list)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+listing+`}`, body)
	for _, path := range []string{"/mcp/none", "/mcp/", "/mcp/few/", "/mcpfew"} {
		status, _, _ := at(path, list)
		require.Equal(t, 404, status, path)
	}
	_, _, header := at("/mcp/few", hello(`{}`))
	session := header.Get("Mcp-Session-Id")
	status, _, _ := at("/mcp/few", list, "Mcp-Session-Id", session)
	require.Equal(t, 200, status)
	status, _, _ = at("/mcp", list, "Mcp-Session-Id", session)
	require.Equal(t, 404, status, "a session stays where it was opened")
}
