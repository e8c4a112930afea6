package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// model answers what say says, and keeps what it was asked.
type model struct {
	info provider.Info
	say  func(ctx context.Context, n int, r *llm.Request, on func(llm.Delta)) (*llm.Response, error)

	mu    sync.Mutex
	asked []llm.Request
}

func (m *model) Info() provider.Info { return m.info }

func (m *model) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	m.mu.Lock()
	n := len(m.asked)
	m.asked = append(m.asked, *r)
	m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, toolerr.New(toolerr.CodeOf(err), "%w", err)
	}
	response, err := m.say(ctx, n, r, on)
	if response != nil && err == nil && on != nil {
		for _, d := range response.Deltas() {
			on(d)
		}
	}
	return response, err
}

// script is a model that gives answers in turn, then the last one.
func script(answers ...*llm.Response) *model {
	return &model{info: provider.Info{Name: "scripted"}, say: func(_ context.Context, n int, _ *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		answer := *answers[min(n, len(answers)-1)]
		return &answer, nil
	}}
}

func says(text string) *llm.Response {
	return &llm.Response{StopReason: llm.StopEnd, Parts: []llm.Part{{Type: llm.TextPart, Text: text}}, Usage: &llm.Usage{Input: 100, Output: 10}}
}

// wants is an answer with calls: "name {args}" each.
func wants(calls ...llm.ToolCall) *llm.Response {
	r := &llm.Response{StopReason: llm.StopCalls, Usage: &llm.Usage{Input: 100, Output: 10}}
	for i := range calls {
		r.Parts = append(r.Parts, llm.Part{Type: llm.CallPart, ToolCall: &calls[i]})
	}
	return r
}

func to(id, name, args string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

func user(text string) llm.Message {
	return llm.Message{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: text}}}
}

// toolbox is a set of tools that are functions.
type toolbox struct {
	tools  []llm.Tool
	choice *llm.Choice
	begin  func() error
	call   func(ctx context.Context, c *llm.ToolCall, progress func(string)) (*call.Result, error)

	mu    sync.Mutex
	calls []llm.ToolCall
}

func tools(names ...string) *toolbox {
	b := &toolbox{}
	for _, name := range names {
		b.tools = append(b.tools, llm.Tool{Name: name, Description: "does " + name, Input: json.RawMessage(`{"type":"object"}`)})
	}
	return b
}

func (b *toolbox) Begin() error {
	if b.begin != nil {
		return b.begin()
	}
	return nil
}

func (b *toolbox) List(_ context.Context, asked *llm.Choice) ([]llm.Tool, *llm.Choice, error) {
	if b.choice != nil {
		return b.tools, b.choice, nil
	}
	return b.tools, asked, nil
}

func (b *toolbox) Call(ctx context.Context, c *llm.ToolCall, progress func(string)) (*call.Result, error) {
	known := false
	for _, t := range b.tools {
		known = known || t.Name == c.Name
	}
	if !known {
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q", c.Name)
	}
	b.mu.Lock()
	b.calls = append(b.calls, *c)
	b.mu.Unlock()
	if b.call != nil {
		return b.call(ctx, c, progress)
	}
	return result(fmt.Sprintf("%s of %s", c.Name, c.Args)), nil
}

func (b *toolbox) made() []llm.ToolCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]llm.ToolCall(nil), b.calls...)
}

func result(text string) *call.Result {
	return &call.Result{Raw: append(jsonrpc.AppendString([]byte(`{"content":[{"type":"text","text":`), text), `}]}`...)}
}

func failure(text string) *call.Result {
	return &call.Result{Raw: append(jsonrpc.AppendString([]byte(`{"isError":true,"content":[{"type":"text","text":`), text), `}]}`...)}
}

// memory is a journal in memory. After limit entries it fails, as of a killed host.
type memory struct {
	mu      sync.Mutex
	entries []json.RawMessage
	limit   int // 0: none
}

var errKilled = fmt.Errorf("killed")

func (m *memory) Append(_ context.Context, entry json.RawMessage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limit > 0 && len(m.entries) >= m.limit {
		return errKilled
	}
	m.entries = append(m.entries, append(json.RawMessage(nil), entry...))
	return nil
}

func (m *memory) Read(context.Context) ([]json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]json.RawMessage(nil), m.entries...), nil
}
