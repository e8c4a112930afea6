package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation/responsestore"
	"github.com/toolroom-mcp/toolroom/host/internal/httpapi"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// scene is an API with a model that says what a test has it say.
type scene struct {
	*httpapi.API
	url    string
	think  func(r *llm.Request, on func(llm.Delta)) (*llm.Response, error)
	until  func(ctx context.Context) // unless nil, is waited for before the model answers
	vendor *llm.Vendor               // nil: Anthropic

	mu     sync.Mutex
	asked  []*llm.Request
	called []string // of the host's tools, with their arguments
	turns  atomic.Int64
	ended  atomic.Int64
}

func newScene(t *testing.T, change func(*httpapi.Config), think func(r *llm.Request, on func(llm.Delta)) (*llm.Response, error)) *scene {
	t.Helper()
	s := &scene{think: think}
	kept := memory.New(memory.Config{})
	cfg := httpapi.Config{
		Models: s, Tools: hostTools{s}, Call: s.handle, Keys: kept.Keys, Blobs: kept.Blobs, Version: "test",
		Sessions: &conversation.Store{Keys: kept.Keys, Log: kept.Log, Blobs: kept.Blobs}, Responses: &responsestore.Store{Keys: kept.Keys, Blobs: kept.Blobs},
	}
	if change != nil {
		change(&cfg)
	}
	s.API = httpapi.New(cfg)
	server := httptest.NewServer(s.API)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *scene) Get(_ context.Context, name string) (provider.Model, error) {
	if name != "" && name != "m" && name != "p/m" {
		return nil, toolerr.New(toolerr.NoModel, "there is no model %s", name)
	}
	return (*fakeModel)(s), nil
}

func (s *scene) List(context.Context) []provider.Info { return []provider.Info{(*fakeModel)(s).Info()} }

type fakeModel scene

func (m *fakeModel) Info() provider.Info {
	info := provider.Info{Name: "m", Provider: "p", Vendor: llm.Anthropic, Window: 10_000_000}
	if m.vendor != nil {
		info.Vendor = *m.vendor
	}
	return info
}

func (m *fakeModel) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	m.mu.Lock()
	m.asked = append(m.asked, r)
	m.mu.Unlock()
	if m.until != nil {
		m.until(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, toolerr.New(toolerr.Cancelled, "%w", err)
	}
	return m.think(r, on)
}

// tools of the host: echo answers its text, broken fails, slow waits for its end.
type hostTools struct{ s *scene }

func (s *scene) tools() []*call.Tool {
	var all []*call.Tool
	for _, name := range []string{"echo", "broken", "other__echo"} {
		all = append(all, &call.Tool{Name: name, Server: "s", Original: name, Definition: json.RawMessage(
			fmt.Sprintf(`{"name":%q,"description":"of the host","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`, name))})
	}
	return all
}

func (h hostTools) List(context.Context) []*call.Tool { return h.s.tools() }

func (h hostTools) Get(_ context.Context, name string) (*call.Tool, bool) {
	for _, t := range h.s.tools() {
		if t.Name == name {
			return t, true
		}
	}
	return nil, false
}

func (h hostTools) Turn(c call.Caller, only []string) (agent.Tools, func() error) {
	h.s.turns.Add(1)
	return &turn{h.s, only, c}, func() error { h.s.ended.Add(1); return nil }
}

type turn struct {
	s      *scene
	only   []string
	caller call.Caller
}

func (t *turn) Begin() error { return nil }

func (t *turn) has(name string) bool { return t.only == nil || catalog.MatchesAny(t.only, name) }

func (t *turn) List(_ context.Context, asked *llm.Choice) ([]llm.Tool, *llm.Choice, error) {
	var all []llm.Tool
	for _, one := range t.s.tools() {
		definition, err := llm.ParseTool(one.Definition)
		if err == nil && t.has(one.Name) {
			all = append(all, definition)
		}
	}
	return all, asked, nil
}

func (t *turn) Call(ctx context.Context, c *llm.ToolCall, _ func(string)) (*call.Result, error) {
	if !t.has(c.Name) {
		return nil, toolerr.New(toolerr.ToolNotFound, "there is no tool %s", c.Name)
	}
	return t.s.run(ctx, c.Name, c.Args)
}

func (s *scene) handle(ctx context.Context, r *call.Request) (*call.Result, error) {
	args, err := r.Arguments()
	if err != nil {
		return nil, err
	}
	return s.run(ctx, r.Tool.Name, args)
}

func (s *scene) run(_ context.Context, name string, args json.RawMessage) (*call.Result, error) {
	s.mu.Lock()
	s.called = append(s.called, name+string(args))
	s.mu.Unlock()
	switch name {
	case "broken":
		return nil, toolerr.New(toolerr.ServerOffline, "the server is offline")
	case "asks":
		return nil, &call.PendingError{Pending: call.Pending{Tool: name, Message: "somebody has to decide", Reason: "a rule"}}
	}
	var a struct{ Text string }
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	text, err := json.Marshal("echo: " + a.Text)
	return &call.Result{Raw: json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text))}, err
}

// says is an answer in words.
func says(text string) *llm.Response {
	return &llm.Response{Parts: []llm.Part{{Type: llm.TextPart, Text: text}}, StopReason: llm.StopEnd, Usage: &llm.Usage{Input: 10, Output: 2}}
}

// calls is an answer with calls: text, then name and arguments of each.
func calls(text string, pairs ...string) *llm.Response {
	r := &llm.Response{StopReason: llm.StopCalls, Usage: &llm.Usage{Input: 10, Output: 5}}
	if text != "" {
		r.Parts = append(r.Parts, llm.Part{Type: llm.TextPart, Text: text})
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Parts = append(r.Parts, llm.Part{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: fmt.Sprintf("c%d", i/2), Name: pairs[i], Args: json.RawMessage(pairs[i+1])}})
	}
	return r
}

// script answers with one after the other, in pieces.
func script(answers ...*llm.Response) func(*llm.Request, func(llm.Delta)) (*llm.Response, error) {
	var next atomic.Int64
	return func(_ *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
		i := int(next.Add(1)) - 1
		if i >= len(answers) {
			return nil, toolerr.New(toolerr.ModelError, "the script has no more answers")
		}
		r := *answers[i]
		if on != nil {
			for _, d := range r.Deltas() {
				half := d
				if len(d.Args) > 1 { // in two, as vendors do
					half.Args = d.Args[:1]
					on(half)
					on(llm.Delta{Index: d.Index, Type: d.Type, Args: d.Args[1:]})
					continue
				}
				on(d)
			}
		}
		return &r, nil
	}
}

// last are the messages that the model was asked with last, each as its role and what
// it says, calls and results.
func (s *scene) last() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, m := range s.asked[len(s.asked)-1].Messages {
		text := string(m.Role) + ":"
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				text += " " + p.ToolCall.Name + string(p.ToolCall.Args)
			case p.ToolResult != nil:
				for _, c := range p.ToolResult.Content {
					text += " <" + c.Text + ">"
				}
			case p.Type == llm.ImagePart:
				text += " [" + p.Media.MIME + "]"
			default:
				text += " " + p.Text
			}
		}
		all = append(all, text)
	}
	return all
}

func (s *scene) do(t *testing.T, method, path, body string, headers ...string) (int, map[string]any, http.Header) {
	t.Helper()
	status, text, header := s.text(t, method, path, body, headers...)
	return status, parsed(t, text), header
}

func parsed(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

func (s *scene) text(t *testing.T, method, path, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, content)
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text), resp.Header
}

// sent is one server-sent event.
type sent struct {
	event string
	data  map[string]any
	text  string
}

func eventsOf(t *testing.T, stream string) []sent {
	t.Helper()
	var all []sent
	var now sent
	lines := bufio.NewScanner(strings.NewReader(stream))
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			now.event = name
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			now.text = data
			if data != "[DONE]" {
				require.NoError(t, json.Unmarshal([]byte(data), &now.data), data)
			}
		}
		if line == "" && now.text != "" {
			all = append(all, now)
			now = sent{}
		}
	}
	return all
}

// at follows names and indices into what JSON said.
func at(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}
