package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const token = "a-token-of-sufficient-length"

// tools is a catalogue of whatever is asked for, and the handler of its
// calls: the tool NAME does what the function of that name does.
type tools map[string]func(ctx context.Context, req *call.Request) (*call.Result, error)

const listing = `{"tools":[{"name":"x","odd":1.0,"icons":[{"src":"l","q":2}]}]}`

func (t tools) Lookup(_ context.Context, name string) (*call.Tool, bool) {
	_, ok := t[name]
	return &call.Tool{Name: name, Original: name}, ok
}

func (tools) Locate(context.Context, call.ListKind, string) (server, original string, ok bool) {
	return "", "", false
}

func (t tools) List(_ context.Context, _ call.ListKind, modern bool) json.RawMessage {
	if modern {
		return json.RawMessage(strings.TrimSuffix(listing, "}") + `,"resultType":"complete","ttlMs":0,"cacheScope":"private"}`)
	}
	return json.RawMessage(listing)
}

func (t tools) handle(ctx context.Context, req *call.Request) (*call.Result, error) {
	return t[req.Tool.Name](ctx, req)
}

const odd = `{"content":[{"type":"hologram","n":1.0,"icons":[{"src":"a","odd":"<&>"}]}],"x":12345678901234567890,"structuredContent":[1]}`

func raw(s string) func(context.Context, *call.Request) (*call.Result, error) {
	return func(context.Context, *call.Request) (*call.Result, error) {
		return &call.Result{Raw: json.RawMessage(s)}, nil
	}
}

func fixtures() tools {
	offline := func(context.Context, *call.Request) (*call.Result, error) {
		return nil, toolerr.New(toolerr.ServerOffline, "the server exited")
	}
	return tools{
		"odd": raw(odd), "empty": raw(`{}`), "typed": raw(`{"content":[],"resultType":"complete"}`),
		"question": raw(`{"resultType":"input_required","inputRequests":{}}`),
		"breaks":   raw("{\"content\":\n\r[]}"),
		"offline":  offline,
		"rpcerror": func(context.Context, *call.Request) (*call.Result, error) {
			return nil, &call.MCPError{Server: "s", Code: -32602, Object: json.RawMessage(`{"code":-32602,"message":"<bad>","data":[1.0]}`)}
		},
		"params": func(_ context.Context, req *call.Request) (*call.Result, error) {
			text, err := json.Marshal(string(req.Params))
			return &call.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `}]}`)}, err
		},
		"progress": func(_ context.Context, req *call.Request) (*call.Result, error) {
			for _, p := range []string{`{"progressToken":7,"progress":1,"odd":1.0}`, `{"progressToken":7,"progress":2}`} {
				req.OnNotify("notifications/progress", json.RawMessage(p))
			}
			return &call.Result{Raw: json.RawMessage(odd)}, nil
		},
	}
}

func open(t *testing.T, ts tools) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(gateway.Config{Name: "toolroom", Title: "Toolroom", Version: "1", Instructions: "hello"}, ts, ts.handle)
	require.NoError(t, err)
	return g
}

// door is an HTTP door with a client.
type door struct {
	*httptest.Server
	host string
}

func serve(t *testing.T, g *gateway.Gateway) door {
	t.Helper()
	return serveWith(t, g, gateway.HTTPConfig{Token: token})
}

func serveWith(t *testing.T, g *gateway.Gateway, cfg gateway.HTTPConfig) door {
	t.Helper()
	var h *gateway.HTTPHandler
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	host := s.Listener.Addr().String()
	cfg.Hosts = []string{host, "localhost:1"}
	h = g.HTTP(cfg)
	s.Config = gateway.NewHTTPServer(s.Config.Handler)
	s.Start()
	t.Cleanup(func() {
		require.NoError(t, h.Close(context.Background()))
		s.CloseClientConnections()
		s.Close()
	})
	return door{s, host}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":7}`

// post sends a message; headers are pairs.
func (d door) post(t *testing.T, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/mcp", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	set(req, headers)
	return d.do(t, req)
}

func set(req *http.Request, headers []string) {
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			req.Host = headers[i+1]
		case headers[i+1] == "":
			req.Header.Del(headers[i])
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
	}
}

func (d door) do(t *testing.T, req *http.Request) (int, string, http.Header) {
	t.Helper()
	resp, err := d.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, strings.TrimSpace(string(text)), resp.Header
}

func modernHeaders(method, name string) []string {
	h := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return h
}

// asked are requests with the answers of both doors.
func asked() []struct {
	name, tool, legacy, modern string
	modernStatus               int
} {
	const offline = `{"content":[{"type":"text","text":"SERVER_OFFLINE: the server exited"}],"isError":true,"_meta":{"toolroom/code":"SERVER_OFFLINE"}}`
	type row = struct {
		name, tool, legacy, modern string
		modernStatus               int
	}
	close := func(s string) string { return strings.TrimSuffix(s, "}") + `,"resultType":"complete"}` }
	result := func(tool, r string) row { return row{tool, tool, `"result":` + r, `"result":` + close(r), 200} }
	rpc := `"error":{"code":-32602,"message":"<bad>","data":[1.0]}`
	unknown := `"error":{"code":-32602,"message":"unknown tool \"nope\"; tools/list lists the tools"}`
	return []row{
		result("odd", odd), result("offline", offline),
		{"empty", "empty", `"result":{}`, `"result":{"resultType":"complete"}`, 200},
		{"typed", "typed", `"result":{"content":[],"resultType":"complete"}`, `"result":{"content":[],"resultType":"complete"}`, 200},
		{"rpcerror", "rpcerror", rpc, rpc, 400},
		{"unknown", "nope", unknown, unknown, 400},
		{"star", "*", strings.ReplaceAll(unknown, "nope", "*"), strings.ReplaceAll(unknown, "nope", "*"), 400},
	}
}

func TestAnswersOverHTTPAreTheBytesThatWereReceived(t *testing.T) {
	d := serve(t, open(t, fixtures()))
	for _, c := range asked() {
		t.Run(c.name, func(t *testing.T) {
			status, body, _ := d.post(t, `{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call","params":{"name":"`+c.tool+`"}}`)
			require.Equal(t, 200, status)
			require.Equal(t, `{"jsonrpc":"2.0","id":12345678901234567890,`+c.legacy+`}`, body)
			status, body, _ = d.post(t, `{"jsonrpc":"2.0","id":"a\u0062","method":"tools/call","params":{"name":"`+c.tool+`",`+modernMeta+`}}`, modernHeaders("tools/call", c.tool)...)
			require.Equal(t, `{"jsonrpc":"2.0","id":"a\u0062",`+c.modern+`}`, body)
			require.Equal(t, c.modernStatus, status)
		})
	}
}

// talk sends lines to the stdio door and returns its answers by id.
func talk(t *testing.T, g *gateway.Gateway, lines ...string) (answers map[string]string, all []string) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, g.ServeStdio(t.Context(), strings.NewReader(strings.Join(lines, "\n")), &out, t.Logf))
	answers = map[string]string{}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		all = append(all, line)
		var m struct{ ID json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		answers[string(m.ID)] = line
	}
	return answers, all
}

func TestAnswersOverStdioAreTheBytesThatWereReceived(t *testing.T) {
	g := open(t, fixtures())
	for _, c := range asked() {
		answers, _ := talk(t, g, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+c.tool+`"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+c.tool+`",`+modernMeta+`}}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,`+c.legacy+`}`, answers["1"])
		require.Equal(t, `{"jsonrpc":"2.0","id":2,`+c.modern+`}`, answers["2"])
	}
}

func TestListsAreTheCatalogues(t *testing.T) {
	g := open(t, fixtures())
	d := serve(t, g)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	_, body, _ := d.post(t, list)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+listing+`}`, body)
	modern := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`
	_, body, _ = d.post(t, modern, modernHeaders("tools/list", "")...)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+string(tools{}.List(t.Context(), call.Tools, true))+`}`, body)
	answers, _ := talk(t, g, list, strings.Replace(modern, `"id":1`, `"id":2`, 1))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+listing+`}`, answers["1"])
	require.Contains(t, answers["2"], `"resultType":"complete"`)
}

func TestOpenings(t *testing.T) {
	g := open(t, fixtures())
	d := serve(t, g)
	status, body, header := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	require.Equal(t, 200, status)
	for _, want := range []string{`"title":"Toolroom"`, `"instructions":"hello"`, `"listChanged":true`, `"protocolVersion":"2025-11-25"`} {
		require.Contains(t, body, want)
	}
	session := header.Get("Mcp-Session-Id")
	require.NotEmpty(t, session)
	status, _, _ = d.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session)
	require.Equal(t, 202, status)
	status, body, _ = d.post(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", session)
	require.Equal(t, 200, status)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{}}`, body)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, d.URL+"/mcp", nil)
	require.NoError(t, err)
	set(req, []string{"Authorization", "Bearer " + token, "Mcp-Session-Id", session})
	status, _, _ = d.do(t, req)
	require.Equal(t, 200, status)
	for _, gone := range []string{session, "mcp-session-of-another-run"} {
		status, _, _ = d.post(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", gone)
		require.Equal(t, 404, status)
	}
	status, body, _ = d.post(t, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+modernMeta+`}}`, modernHeaders("server/discover", "")...)
	require.Equal(t, 200, status)
	require.Contains(t, body, `"2026-07-28"`)
	require.Contains(t, body, `"instructions":"hello"`)

	_, err = gateway.New(gateway.Config{Name: "x", Instructions: strings.Repeat("x", 1025)}, nil, nil)
	require.Error(t, err)
}

func TestProgressIsAnEventBeforeTheAnswer(t *testing.T) {
	d := serve(t, open(t, fixtures()))
	for _, modern := range []bool{false, true} {
		var headers []string
		answer := odd
		meta := `"_meta":{"progressToken":7}`
		if modern {
			headers, meta = modernHeaders("tools/call", "progress"), modernMeta
			answer = strings.TrimSuffix(odd, "}") + `,"resultType":"complete"}`
		}
		message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress",` + meta + `}}`
		status, body, header := d.post(t, message, headers...)
		require.Equal(t, 200, status)
		require.Equal(t, "text/event-stream", header.Get("Content-Type"))
		require.Equal(t, `event: message
data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"odd":1.0}}

event: message
data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":2}}

event: message
data: {"jsonrpc":"2.0","id":1,"result":`+answer+`}`, body)
		// A client that takes no events gets the answer alone.
		_, body, header = d.post(t, message, append(headers, "Accept", "application/json")...)
		require.Equal(t, "application/json", header.Get("Content-Type"))
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+answer+`}`, body)
	}
}

func TestParametersReachTheHandlerAsReceived(t *testing.T) {
	g := open(t, fixtures())
	params := `{"name":"params", "arguments":{"n": 1.0,"big":12345678901234567890,"s":"\u003c"},"odd":[ ]}`
	want, err := json.Marshal(params)
	require.NoError(t, err)
	_, body, _ := serve(t, g).post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`)
	require.Contains(t, body, string(want))
	answers, _ := talk(t, g, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`)
	require.Contains(t, answers["1"], string(want))
}

func TestWhatTwoReadersCouldReadDifferentlyIsRefused(t *testing.T) {
	d := serve(t, open(t, fixtures()))
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"odd"}}`,
		`{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"odd"}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, `{`, ``, "\xff",
	} {
		status, answer, _ := d.post(t, body)
		require.Equal(t, 400, status, body)
		require.Contains(t, answer, `"error":{"code":-32`, body)
	}
	for _, params := range []string{`{"name":"odd","name":"x"}`, `{"Name":"odd"}`, `{"name":"odd","NAME":"x"}`, `{"name":1}`, `{}`} {
		_, answer, _ := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`)
		require.Contains(t, answer, `"error":{`, params)
	}
}

func TestAQuestionIsNotPassedToALegacyClient(t *testing.T) {
	answers, _ := talk(t, open(t, fixtures()),
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"question"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"question",`+modernMeta+`}}`)
	require.Contains(t, answers["1"], `"isError":true`)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{}}}`, answers["2"])
}

func TestCancelEndsTheCall(t *testing.T) {
	ts := fixtures()
	started, ended := make(chan struct{}, 4), make(chan error, 4)
	ts["wait"] = func(ctx context.Context, _ *call.Request) (*call.Result, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	g := open(t, ts)
	d := serve(t, g)
	wait := func() {
		t.Helper()
		select {
		case err := <-ended:
			require.ErrorIs(t, err, context.Canceled)
		case <-time.After(time.Minute):
			t.Fatal("the call goes on")
		}
	}

	// HTTP: the client closes the stream.
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`))
	require.NoError(t, err)
	set(req, []string{"Content-Type", "application/json", "Authorization", "Bearer " + token})
	var wg sync.WaitGroup
	wg.Go(func() {
		if resp, err := d.Client().Do(req); err == nil {
			resp.Body.Close()
			t.Error("answered")
			started <- struct{}{}
		}
	})
	<-started
	cancel()
	wait()
	wg.Wait()

	// stdio: the notification; no answer follows.
	in, feed := io.Pipe()
	var out bytes.Buffer
	wg.Go(func() {
		if err := g.ServeStdio(t.Context(), in, &out, t.Logf); err != nil {
			t.Error(err)
		}
	})
	io.WriteString(feed, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`+"\n") //nolint:errcheck
	<-started
	io.WriteString(feed, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n") //nolint:errcheck
	wait()
	feed.Close()
	wg.Wait()
	require.Empty(t, out.String())
}

func TestAChangeIsTold(t *testing.T) {
	g := open(t, fixtures())
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := g.ServeStdio(t.Context(), in, out, t.Logf); err != nil {
			t.Error(err)
		}
		out.Close()
	})
	lines := make(chan string, 10)
	wg.Go(func() {
		text := json.NewDecoder(answers)
		for {
			var m json.RawMessage
			if err := text.Decode(&m); errors.Is(err, io.EOF) {
				return
			}
			lines <- string(m)
		}
	})
	io.WriteString(feed, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n") //nolint:errcheck
	<-lines
	<-lines
	g.NotifyListChanged(call.Tools)
	select {
	case line := <-lines:
		require.Contains(t, line, `"notifications/tools/list_changed"`)
	case <-time.After(time.Minute):
		t.Error("not told")
	}
	feed.Close()
	wg.Wait()
}
