// Package trace has the stages that send a trace of every call to an OpenTelemetry collector:
// a span for the call as the host received it, and inside it one for each request to a server.
//
// Tracing is off unless the environment names a collector, as for OpenTelemetry's own
// libraries:
//
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318
//
// Names and attributes follow OpenTelemetry's semantic conventions for MCP (status:
// development). The context is in params._meta as traceparent and tracestate (W3C Trace
// Context): the client's context is the parent of the host's span, and the server gets the
// host's span as its parent. If tracing is off, both pass unchanged. Spans never contain
// arguments or results.
//
// # Cost
//
// A call only queues its spans; a goroutine sends them in batches as OTLP/HTTP with JSON.
// Spans that do not fit into the queue, or that the collector does not accept, are dropped and
// counted. OpenTelemetry's own library with its exporter would add protocol buffers and gRPC to
// the binary (8 MB, and three milliseconds to every start) for one request with a fixed form.
package trace

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The kinds of a span, as OTLP numbers them.
const (
	kindServer = 2
	kindClient = 3
)

// span is a span that has not ended.
type span struct {
	id     spanContext
	parent [8]byte // zero: none
	remote bool    // whether the parent is
	kind   int
	name   string
	begin  time.Time
	took   time.Duration
	state  string // tracestate
	fault  string // error.type; "": none
	words  string // of the error
	attrs  []attribute
}

type attribute struct{ key, value string }

type spanKey struct{}

// Stage makes the span of a call as it came. It is the outermost stage.
func (t *Tracer) Stage(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		s := t.root(req.Params)
		s.tool(req)
		s.door(req.Caller)
		res, err := next(context.WithValue(ctx, spanKey{}, s), req)
		t.endCall(s, res, err)
		return res, err
	}
}

// Sending makes the span of a call as it is sent to its server, whose parent
// context it becomes. It is the innermost stage.
func (t *Tracer) Sending(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		s := t.child(ctx)
		s.tool(req)
		s.add("toolroom.server", req.Tool.Server)
		sent := *req
		sent.Params = s.inject(req.Params)
		res, err := next(ctx, &sent)
		t.endCall(s, res, err)
		return res, err
	}
}

// Forward makes both spans of a message that is no call of a tool.
func (t *Tracer) Forward(next call.Forwarder) call.Forwarder {
	return func(ctx context.Context, m *call.ServerRequest) (json.RawMessage, error) {
		outer := t.root(m.Params)
		outer.message(m)
		outer.door(m.Caller)
		inner := t.child(context.WithValue(ctx, spanKey{}, outer))
		inner.message(m)
		inner.add("toolroom.server", m.Server)
		sent := *m
		sent.Params = inner.inject(m.Params)
		raw, err := next(ctx, &sent)
		t.end(inner, err)
		t.end(outer, err)
		return raw, err
	}
}

// root begins a span for params that came in.
func (t *Tracer) root(params json.RawMessage) *span {
	s := &span{kind: kindServer, begin: time.Now()}
	parent, state, ok := parentOf(params)
	if ok {
		s.id.trace, s.parent, s.remote, s.state = parent.trace, parent.span, true, state
	} else {
		s.id.trace = newTrace()
	}
	s.id.span = newSpan()
	s.id.sampled = t.cfg.Sampler.samples(s.id.trace, parent, ok)
	return s
}

// child begins a span within that of ctx.
func (t *Tracer) child(ctx context.Context) *span {
	s := &span{kind: kindClient, begin: time.Now()}
	if outer, ok := ctx.Value(spanKey{}).(*span); ok {
		s.id, s.parent, s.state = outer.id, outer.id.span, outer.state
	} else {
		s.id.trace = newTrace()
		s.id.sampled = t.cfg.Sampler.samples(s.id.trace, spanContext{}, false)
	}
	s.id.span = newSpan()
	return s
}

func (s *span) add(key, value string) {
	if s.id.sampled && value != "" {
		s.attrs = append(s.attrs, attribute{key, value})
	}
}

func (s *span) tool(req *call.Request) {
	name := req.Tool.Name
	if s.kind == kindClient {
		name = req.Tool.Original
	}
	s.name = "tools/call " + name
	s.add("mcp.method.name", "tools/call")
	s.add("gen_ai.operation.name", "execute_tool")
	s.add("gen_ai.tool.name", name)
}

// message names the span of a message by its prompt; a URI would make names
// without number.
func (s *span) message(m *call.ServerRequest) {
	s.name = m.Method
	s.add("mcp.method.name", m.Method)
	members, err := jsonrpc.Members(m.Params)
	if err != nil || !s.id.sampled {
		return
	}
	for _, member := range members {
		var value string
		switch {
		case json.Unmarshal(member.Value, &value) != nil:
		case member.Name == "name" && m.Method == "prompts/get":
			s.name += " " + value
			s.add("gen_ai.prompt.name", value)
		case member.Name == "uri":
			s.add("mcp.resource.uri", value)
		}
	}
}

// door says how the caller came.
func (s *span) door(c call.Caller) {
	switch {
	case c.Depth > 0:
		s.add("network.transport", "unix")
		s.add("toolroom.depth", strconv.Itoa(c.Depth))
	case c.EntryPoint == "http":
		s.add("network.transport", "tcp")
		s.add("network.protocol.name", "http")
	case c.EntryPoint == "stdio":
		s.add("network.transport", "pipe")
	}
	if c.Modern {
		s.add("mcp.protocol.version", "2026-07-28")
	}
}

func (t *Tracer) endCall(s *span, res *call.Result, err error) {
	if err == nil && res.IsError() {
		s.fault = "tool_error"
	}
	t.end(s, err)
}

// end hands a span over.
func (t *Tracer) end(s *span, err error) {
	if !s.id.sampled {
		return
	}
	s.took = time.Since(s.begin)
	var answered *call.MCPError
	switch {
	case errors.As(err, &answered):
		s.fault, s.words = strconv.Itoa(answered.Code), answered.Message
		s.add("rpc.response.status_code", s.fault)
	case err != nil:
		s.fault = string(toolerr.CodeOf(err))
	}
	s.add("error.type", s.fault)
	t.put(s)
}
