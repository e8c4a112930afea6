package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/httpapi"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestSessionsAreGoneOnWith(t *testing.T) {
	s := newScene(t, nil, script(calls("", "echo", `{"text":"a"}`), says("one"), says("two"), says("fork"), calls("", "weather", `{}`), says("wet")))
	status, v, _ := s.do(t, "POST", "/v1/sessions", `{"name":"first"}`)
	require.Equal(t, 201, status)
	id := v["id"].(string)
	ask := func(id, text, more string) map[string]any {
		status, v, _ := s.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(`{"x_session":%q,"messages":[{"role":"system","content":"now"},%s]%s}`, id, text, more))
		require.Equal(t, 200, status, v)
		return v
	}
	user := func(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }
	ask(id, user("q1"), "")
	ask(id, user("q2"), `,"stream":false`)
	require.Equal(t, []string{"system: now", "user: q1", `assistant: echo{"text":"a"}`, "tool: <echo: a>", "assistant: one", "user: q2"}, s.last())

	_, v, _ = s.do(t, "GET", "/v1/sessions/"+id+"/messages", "")
	require.Len(t, v["data"], 6)
	require.Equal(t, "q1", at(v, "data", 0, "content"))
	status, v, _ = s.do(t, "POST", "/v1/sessions/"+id+"/fork", `{"name":"second","messages":4}`)
	require.Equal(t, 201, status, v)
	fork := v["id"].(string)
	require.Equal(t, id, v["parent"])
	ask(fork, user("q3"), "")
	require.Equal(t, []string{"system: now", "user: q1", `assistant: echo{"text":"a"}`, "tool: <echo: a>", "assistant: one", "user: q3"}, s.last())

	// The client's calls are answered in the next request, or by nobody.
	v = ask(fork, user("q4"), ","+theirTool)
	call := at(v, "choices", 0, "message", "tool_calls", 0, "id").(string)
	ask(fork, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"rain"}`, call), ","+theirTool)
	last := s.last()
	require.Equal(t, []string{"user: q4", "assistant: weather{}", "tool: <rain>"}, last[len(last)-3:])

	status, v, _ = s.do(t, "POST", "/v1/sessions/"+fork, `{"name":"renamed"}`)
	require.Equal(t, 200, status)
	require.Equal(t, "renamed", v["name"])
	status, v, _ = s.do(t, "POST", "/v1/sessions/"+fork+"/messages", `{"messages":[{"role":"user","content":"said elsewhere"}]}`)
	require.Equal(t, 200, status, v)
	_, v, _ = s.do(t, "GET", "/v1/sessions", "")
	require.Len(t, v["data"], 2)
	require.Equal(t, fork, at(v, "data", 0, "id"))
	status, v, _ = s.do(t, "DELETE", "/v1/sessions/"+fork, "")
	require.Equal(t, 200, status)
	require.Equal(t, true, v["deleted"])
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/sessions/" + fork, "", 404}, {"DELETE", "/v1/sessions/" + fork, "", 404}, {"GET", "/v1/sessions/" + fork + "/messages", "", 404},
		{"POST", "/v1/sessions/" + fork, `{"name":"x"}`, 404}, {"POST", "/v1/sessions/" + id, `{}`, 400}, {"POST", "/v1/sessions/" + id, `{"colour":"red"}`, 400},
		{"POST", "/v1/sessions/" + id + "/fork", `{"messages":2}`, 400}, {"POST", "/v1/sessions/" + id + "/fork", `{"messages":0}`, 400},
		{"POST", "/v1/sessions", `{"name":"a\nb"}`, 400}, {"POST", "/v1/sessions/" + id + "/messages", `{"messages":[{"role":"tool","tool_call_id":"x","content":""}]}`, 400},
		{"POST", "/v1/sessions/" + id + "/messages", `{"messages":[]}`, 400}, {"PUT", "/v1/sessions/" + id, `{}`, 405},
	} {
		status, v, _ := s.do(t, c.method, c.path, c.body)
		require.Equal(t, c.status, status, "%s %s %s: %v", c.method, c.path, c.body, v)
		require.NotEmpty(t, at(v, "error", "message"))
	}
}

// A session with calls that nobody answered, and turns of several clients at once, is
// still a conversation that a model takes.
func TestASessionIsAlwaysAConversation(t *testing.T) {
	s := newScene(t, nil, script(calls("", "weather", `{}`), says("on"), says("late")))
	_, v, _ := s.do(t, "POST", "/v1/sessions", `{}`)
	id := v["id"].(string)
	_, v, _ = s.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(`{"x_session":%q,"messages":[{"role":"user","content":"q1"}],%s}`, id, theirTool))
	call := at(v, "choices", 0, "message", "tool_calls", 0, "id").(string)
	status, _, _ := s.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(`{"x_session":%q,"messages":[{"role":"user","content":"q2"}]}`, id))
	require.Equal(t, 200, status)
	require.Equal(t, []string{"user: q1", "assistant: weather{}", "tool: <this call has no result>", "user: q2"}, s.last())
	status, _, _ = s.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(`{"x_session":%q,"messages":[{"role":"tool","tool_call_id":%q,"content":"rain"}]}`, id, call))
	require.Equal(t, 200, status)
	require.Equal(t, []string{"user: q1", "assistant: weather{}", "tool: <rain>", "user: q2", "assistant: on"}, s.last())
	status, _, _ = s.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(`{"x_session":%q,"messages":[{"role":"tool","tool_call_id":"another","content":"rain"}]}`, id))
	require.Equal(t, 400, status)
}

func TestArtifacts(t *testing.T) {
	s := newScene(t, nil, script())
	const page = `<script>alert(1)</script>`
	status, v, _ := s.do(t, "POST", "/artifact?name=../../b%C3%BCcher%22%0A.html", page, "Content-Type", "text/html; charset=utf-8")
	require.Equal(t, 201, status, v)
	require.Equal(t, `bücher__.html`, v["name"])
	require.Equal(t, "text/html; charset=utf-8", v["type"])
	id := v["id"].(string)
	status, text, header := s.text(t, "GET", "/artifact/"+id, "")
	require.Equal(t, 200, status)
	require.Equal(t, page, text)
	require.Equal(t, "text/html; charset=utf-8", header.Get("Content-Type"))
	require.Regexp(t, `^attachment; filename`, header.Get("Content-Disposition"))
	require.Contains(t, header.Get("Content-Security-Policy"), "sandbox")
	require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
	_, v, _ = s.do(t, "GET", "/artifact", "")
	require.Len(t, v["data"], 1)
	status, v, _ = s.do(t, "DELETE", "/artifact/"+id, "")
	require.Equal(t, 200, status)
	require.Equal(t, id, v["id"])
	for _, missing := range []string{id, "x*", "a%2Fb", strings.Repeat("x", 300)} {
		status, v, _ = s.do(t, "GET", "/artifact/"+missing, "")
		require.Equal(t, 404, status, v)
	}
	status, _, _ = s.do(t, "POST", "/artifact", "x", "Content-Type", "no type")
	require.Equal(t, 400, status)
	status, _, _ = s.do(t, "POST", "/artifact", strings.Repeat("x", 51<<20), "Content-Type", "a/b")
	require.Equal(t, 413, status)
	status, v, _ = s.do(t, "POST", "/artifact", "", "Content-Disposition", `attachment; filename="..\\..\\.."`)
	require.Equal(t, 201, status)
	require.Equal(t, "artifact", v["name"])
	require.Equal(t, "application/octet-stream", v["type"])
}

func TestArtifactsHaveAQuota(t *testing.T) {
	kept := memory.New(memory.Config{Quota: store.Quota{Total: 10}})
	s := newScene(t, func(c *httpapi.Config) { c.Keys, c.Blobs = kept.Keys, kept.Blobs }, script())
	status, v, _ := s.do(t, "POST", "/artifact", "12345678")
	require.Equal(t, 201, status)
	id := v["id"].(string)
	status, v, header := s.do(t, "POST", "/artifact", "12345678")
	require.Equal(t, 507, status)
	require.Equal(t, "LIMIT_REACHED", at(v, "error", "code"))
	require.Equal(t, "false", header.Get("X-Should-Retry"))
	_, _, _ = s.do(t, "DELETE", "/artifact/"+id, "")
	status, _, _ = s.do(t, "POST", "/artifact", "12345678")
	require.Equal(t, 201, status, "what was deleted makes room")
}

// Who guesses the tokens of callbacks is bounded, too.
func TestCallbacksAreCounted(t *testing.T) {
	s := newScene(t, func(c *httpapi.Config) { c.Rate, c.Burst = 0.001, 2 }, script())
	door := s.Callback()
	var statuses []int
	for range 3 {
		w := httptest.NewRecorder()
		door.ServeHTTP(w, httptest.NewRequest("POST", "/v1/callback/x/y", strings.NewReader(`{}`)))
		statuses = append(statuses, w.Code)
	}
	require.Equal(t, []int{404, 404, 429}, statuses)
}

func TestToolsAndModels(t *testing.T) {
	s := newScene(t, nil, script())
	_, v, _ := s.do(t, "GET", "/v1/tools", "")
	require.Equal(t, "echo", at(v, "data", 0, "name"))
	_, v, _ = s.do(t, "GET", "/v1/tools?format=openai", "")
	require.Equal(t, "echo", at(v, "data", 0, "function", "name"))
	_, v, _ = s.do(t, "GET", "/v1/tools?format=anthropic", "")
	require.NotNil(t, at(v, "data", 0, "input_schema"))
	status, _, _ := s.do(t, "GET", "/v1/tools?format=x", "")
	require.Equal(t, 400, status)
	status, v, _ = s.do(t, "POST", "/v1/tools/echo", `{"arguments":{"text":"a"}}`)
	require.Equal(t, 200, status)
	require.Equal(t, "echo: a", at(v, "content", 0, "text"))
	for path, want := range map[string]int{"/v1/tools/broken": 503, "/v1/tools/nothing": 404} {
		status, v, _ = s.do(t, "POST", path, `{}`)
		require.Equal(t, want, status)
		require.NotEmpty(t, at(v, "error", "code"))
	}
	for _, body := range []string{`{"arguments":7}`, `{"text":"a"}`, `7`} {
		status, _, _ = s.do(t, "POST", "/v1/tools/echo", body)
		require.Equal(t, 400, status, body)
	}
	_, v, _ = s.do(t, "GET", "/v1/models", "")
	require.Equal(t, "m", at(v, "data", 0, "id"))
	require.Equal(t, "m", v["first_id"])
	for _, id := range []string{"m", "p/m", "p%2Fm"} {
		status, v, _ = s.do(t, "GET", "/v1/models/"+id, "")
		require.Equal(t, 200, status)
		require.Equal(t, "p", v["owned_by"])
	}
	status, v, _ = s.do(t, "GET", "/v1/models/none", "")
	require.Equal(t, 404, status)
	require.Equal(t, "model_not_found", at(v, "error", "code"))
}

// Each operation in the description answers, and with one of
// the statuses it has; and every schema it names is there.
func TestTheDescriptionIsOfWhatIsServed(t *testing.T) {
	s := newScene(t, func(c *httpapi.Config) { c.Approvals = nil }, script())
	status, v, _ := s.do(t, "GET", "/openapi.json", "")
	require.Equal(t, 200, status)
	require.Equal(t, "3.1.0", v["openapi"])
	schemas := at(v, "components", "schemas").(map[string]any)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	used := map[string]bool{}
	for i, part := range strings.Split(string(text), `"#/components/schemas/`) {
		if i > 0 {
			name, _, _ := strings.Cut(part, `"`)
			require.Contains(t, schemas, name)
			used[name] = true
		}
	}
	var operations []string
	ids := map[any]bool{}
	for path, methods := range v["paths"].(map[string]any) {
		for method, op := range methods.(map[string]any) {
			operations = append(operations, strings.ToUpper(method)+" "+path)
			require.False(t, ids[at(op, "operationId")])
			ids[at(op, "operationId")] = true
			for _, name := range strings.Split(path, "/") {
				if name, ok := strings.CutPrefix(name, "{"); ok {
					require.Contains(t, fmt.Sprint(at(op, "parameters")), "name:"+strings.TrimSuffix(name, "}"))
				}
			}
			body := ""
			if at(op, "requestBody") != nil {
				body = `{"no such member": 1}`
			}
			status, text, _ := s.text(t, strings.ToUpper(method), strings.NewReplacer("{id}", "x", "{name}", "x").Replace(path), body)
			require.Contains(t, at(op, "responses"), fmt.Sprint(status), "%s %s: %s", method, path, text)
		}
	}
	sort.Strings(operations)
	require.Equal(t, []string{
		"DELETE /artifact/{id}", "DELETE /v1/responses/{id}", "DELETE /v1/sessions/{id}", "GET /artifact", "GET /artifact/{id}", "GET /openapi.json", "GET /v1/models", "GET /v1/models/{id}",
		"GET /v1/responses/{id}", "GET /v1/responses/{id}/input_items", "GET /v1/sessions", "GET /v1/sessions/{id}", "GET /v1/sessions/{id}/messages", "GET /v1/tools", "POST /artifact", "POST /v1/chat/completions", "POST /v1/messages",
		"POST /v1/messages/count_tokens", "POST /v1/responses", "POST /v1/sessions", "POST /v1/sessions/{id}", "POST /v1/sessions/{id}/fork", "POST /v1/sessions/{id}/messages", "POST /v1/tools/{name}",
	}, operations)
}

// Answers match the description, without members that it does not name.
func TestAnswersAreAsDescribed(t *testing.T) {
	s := newScene(t, nil, script(calls("", "echo", `{}`), says("one"), says("two"), calls("", "broken", `{}`), says("three"), calls("", "echo", `{}`), says("four")))
	_, description, _ := s.do(t, "GET", "/openapi.json", "")
	for _, schema := range at(description, "components", "schemas").(map[string]any) {
		if o := schema.(map[string]any); o["properties"] != nil && o["additionalProperties"] == nil {
			o["additionalProperties"] = false
		}
	}
	for _, open := range []string{"ChatMessage"} { // the vendors' own
		delete(at(description, "components", "schemas", open).(map[string]any), "additionalProperties")
	}
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("http://api/d", description))
	path := func(p string) string {
		return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(p)
	}
	answered := func(status int, method, pattern, address, body string, headers ...string) map[string]any {
		t.Helper()
		got, v, _ := s.do(t, method, address, body, headers...)
		require.Equal(t, status, got, "%s %s: %v", method, address, v)
		schema, err := compiler.Compile(fmt.Sprintf("http://api/d#/paths/%s/%s/responses/%d/content/application~1json/schema", path(pattern), strings.ToLower(method), status))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(v), "%s %s", method, address)
		return v
	}
	chat := `"messages":[{"role":"user","content":"go"}]`
	answered(200, "POST", "/v1/chat/completions", "/v1/chat/completions", `{`+chat+`,"x_events":true}`)
	answered(200, "POST", "/v1/messages", "/v1/messages", `{`+chat+`}`)
	answered(200, "POST", "/v1/messages", "/v1/messages", `{`+chat+`,"x_events":true}`)
	made := answered(200, "POST", "/v1/responses", "/v1/responses", `{"input":"go","x_events":true}`)["id"].(string)
	answered(200, "GET", "/v1/responses/{id}", "/v1/responses/"+made, "")
	answered(200, "GET", "/v1/responses/{id}/input_items", "/v1/responses/"+made+"/input_items", "")
	answered(200, "DELETE", "/v1/responses/{id}", "/v1/responses/"+made, "")
	answered(404, "DELETE", "/v1/responses/{id}", "/v1/responses/"+made, "")
	answered(400, "POST", "/v1/responses", "/v1/responses", `{"input":[]}`)
	answered(200, "POST", "/v1/messages/count_tokens", "/v1/messages/count_tokens", `{`+chat+`}`)
	answered(404, "POST", "/v1/messages", "/v1/messages", `{"model":"none",`+chat+`}`)
	answered(400, "POST", "/v1/chat/completions", "/v1/chat/completions", `{}`)
	answered(200, "GET", "/v1/models", "/v1/models", "")
	answered(200, "GET", "/v1/models/{id}", "/v1/models/m", "")
	answered(404, "GET", "/v1/models/{id}", "/v1/models/x", "")
	answered(200, "GET", "/v1/tools", "/v1/tools", "")
	answered(200, "POST", "/v1/tools/{name}", "/v1/tools/echo", `{}`)
	id := answered(201, "POST", "/v1/sessions", "/v1/sessions", `{"name":"x"}`)["id"].(string)
	answered(200, "POST", "/v1/sessions/{id}/messages", "/v1/sessions/"+id+"/messages", `{`+chat+`}`)
	answered(200, "GET", "/v1/sessions/{id}/messages", "/v1/sessions/"+id+"/messages", "")
	answered(200, "POST", "/v1/sessions/{id}", "/v1/sessions/"+id, `{"name":"y"}`)
	answered(201, "POST", "/v1/sessions/{id}/fork", "/v1/sessions/"+id+"/fork", `{}`)
	answered(200, "GET", "/v1/sessions", "/v1/sessions", "")
	answered(200, "GET", "/v1/sessions/{id}", "/v1/sessions/"+id, "")
	answered(200, "DELETE", "/v1/sessions/{id}", "/v1/sessions/"+id, "")
	id = answered(201, "POST", "/artifact", "/artifact", "x", "Content-Type", "text/plain")["id"].(string)
	answered(200, "GET", "/artifact", "/artifact", "")
	answered(200, "DELETE", "/artifact/{id}", "/artifact/"+id, "")
	answered(404, "DELETE", "/artifact/{id}", "/artifact/"+id, "")
}

func TestWhoAsksTooOftenIsToldToWait(t *testing.T) {
	now := time.Unix(1e9, 0)
	var mu sync.Mutex
	s := newScene(t, func(c *httpapi.Config) {
		c.Rate, c.Burst = 2, 3
		c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	}, script())
	for i := range 4 {
		status, v, header := s.do(t, "GET", "/v1/models", "")
		if i < 3 {
			require.Equal(t, 200, status)
			continue
		}
		require.Equal(t, 429, status)
		require.Equal(t, "1", header.Get("Retry-After"))
		require.Equal(t, "rate_limit_error", at(v, "error", "type"))
	}
	mu.Lock()
	now = now.Add(time.Second)
	mu.Unlock()
	status, _, _ := s.do(t, "GET", "/v1/models", "")
	require.Equal(t, 200, status)
}

// pipes are connections that take no descriptors.
type pipes struct {
	made chan net.Conn
	end  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.made <- there
	return here, nil
}

// Two hundred streams are answered at once: none waits for another to end, and one
// more is told to wait.
func TestTwoHundredStreamsAtOnce(t *testing.T) {
	const n = 200
	asked, refused := make(chan struct{}), make(chan struct{})
	var waiting atomic.Int64
	s := newScene(t, func(c *httpapi.Config) { c.Runs = n }, func(_ *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
		on(llm.Delta{Type: llm.TextPart, Text: "Hel"})
		on(llm.Delta{Type: llm.TextPart, Text: "lo."})
		return says("Hello."), nil
	})
	s.until = func(ctx context.Context) {
		if waiting.Add(1) == n {
			close(asked)
		}
		select {
		case <-refused:
		case <-ctx.Done():
		}
	}
	door := pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: s.API}
	var served sync.WaitGroup
	served.Go(func() { server.Serve(door) }) //nolint:errcheck // it is closed
	client := &http.Client{Transport: &http.Transport{DialContext: door.dial}}
	var done sync.WaitGroup
	fault := make(chan error, n)
	for range n {
		done.Go(func() {
			resp, err := client.Post("http://api/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"go"}],"stream":true}`))
			if err != nil {
				fault <- err
				return
			}
			defer resp.Body.Close()
			lines, last := bufio.NewScanner(resp.Body), ""
			for lines.Scan() {
				if lines.Text() != "" {
					last = lines.Text()
				}
			}
			if last != "data: [DONE]" {
				fault <- fmt.Errorf("it ended with %q", last)
			}
		})
	}
	<-asked
	status, v, _ := s.do(t, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}]}`)
	close(refused)
	require.Equal(t, 429, status, v)
	done.Wait()
	client.CloseIdleConnections()
	close(door.end)
	require.NoError(t, server.Close())
	served.Wait()
	close(fault)
	for err := range fault {
		require.NoError(t, err)
	}
	require.Equal(t, s.turns.Load(), s.ended.Load())
}

// A client that does not read is hung up on, and what is done for it ends.
func TestAClientThatDoesNotReadEndsTheRun(t *testing.T) {
	ended := make(chan struct{})
	s := newScene(t, func(c *httpapi.Config) { c.WriteTimeout = 20 * time.Millisecond }, nil)
	var life context.Context
	s.until = func(ctx context.Context) { life = ctx }
	s.think = func(_ *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
		defer close(ended)
		for life.Err() == nil {
			on(llm.Delta{Type: llm.TextPart, Text: strings.Repeat("x", 10000)})
		}
		return nil, toolerr.New(toolerr.Cancelled, "%w", life.Err())
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	body := `{"messages":[{"role":"user","content":"go"}],"stream":true}`
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	require.NoError(t, err)
	<-ended
	require.NoError(t, conn.Close())
}

// A silent stream shows that it is alive, and a client that has hung up is noticed
// while its model is silent.
func TestASilentStreamShowsThatItIsAlive(t *testing.T) {
	for _, path := range []string{"/v1/chat/completions", "/v1/messages"} {
		ended := make(chan struct{})
		s := newScene(t, func(c *httpapi.Config) { c.KeepAlive = time.Millisecond }, script())
		s.until = func(ctx context.Context) { <-ctx.Done(); close(ended) }
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, err)
		body := `{"messages":[{"role":"user","content":"go"}],"stream":true}`
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
		require.NoError(t, err)
		lines := bufio.NewScanner(conn)
		beats := 0
		for beats < 3 && lines.Scan() {
			if strings.HasPrefix(lines.Text(), ":") || lines.Text() == "event: ping" {
				beats++
			}
		}
		require.Equal(t, 3, beats)
		require.NoError(t, conn.Close())
		<-ended
	}
}
