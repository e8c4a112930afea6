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
	id        spanContext
	parent    [8]byte // zero: none
	remote    bool    // the parent is in another process
	kind      int
	name      string
	begin     time.Time
	duration  time.Duration
	state     string // tracestate
	errorType string // error.type; "": none
	errorText string // text of the error
	attrs     []attribute
}

// attribute is a property of a span.
type attribute struct{ key, value string }

// spanKey is the context key of the current *span.
type spanKey struct{}

// Stage returns a handler that makes the span of a call as received. It is the
// outermost stage.
func (t *Tracer) Stage(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		s := t.beginRoot(req.Params)
		s.setTool(req)
		s.setEntryPoint(req.Caller)
		res, err := next(context.WithValue(ctx, spanKey{}, s), req)
		t.endCall(s, res, err)
		return res, err
	}
}

// UpstreamStage returns a handler that makes the span of a call as sent to its server, and
// passes the span's context to the server. It is the innermost stage.
func (t *Tracer) UpstreamStage(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		s := t.beginChild(ctx)
		s.setTool(req)
		s.addAttribute("toolroom.server", req.Tool.Server)
		sent := *req
		sent.Params = s.inject(req.Params)
		res, err := next(ctx, &sent)
		t.endCall(s, res, err)
		return res, err
	}
}

// TraceForward wraps the forwarder of requests that are not tool calls in two spans: the
// client's request, and within it the request to the server. The params that the server
// gets contain the context of the inner span.
func (t *Tracer) TraceForward(next call.Forwarder) call.Forwarder {
	return func(ctx context.Context, m *call.UpstreamRequest) (json.RawMessage, error) {
		outer := t.beginRoot(m.Params)
		outer.setMessageName(m)
		outer.setEntryPoint(m.Caller)
		inner := t.beginChild(context.WithValue(ctx, spanKey{}, outer))
		inner.setMessageName(m)
		inner.addAttribute("toolroom.server", m.Server)
		sent := *m
		sent.Params = inner.inject(m.Params)
		raw, err := next(ctx, &sent)
		t.end(inner, err)
		t.end(outer, err)
		return raw, err
	}
}

// beginRoot begins a span for received params, below the span that they name if any.
func (t *Tracer) beginRoot(params json.RawMessage) *span {
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

// beginChild begins a span of a request to a server, below the span of ctx. Without one it
// begins a new trace.
func (t *Tracer) beginChild(ctx context.Context) *span {
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

// addAttribute adds an attribute if the span is sampled and the value is not empty.
func (s *span) addAttribute(key, value string) {
	if s.id.sampled && value != "" {
		s.attrs = append(s.attrs, attribute{key, value})
	}
}

// setTool sets the name and the attributes of a span for a tool call.
func (s *span) setTool(req *call.Request) {
	name := req.Tool.Name
	if s.kind == kindClient {
		name = req.Tool.Original
	}
	s.name = "tools/call " + name
	s.addAttribute("mcp.method.name", "tools/call")
	s.addAttribute("gen_ai.operation.name", "execute_tool")
	s.addAttribute("gen_ai.tool.name", name)
}

// setMessageName names the span of a request by its prompt. It does not use a URI,
// because there is no limit on the number of URIs.
func (s *span) setMessageName(m *call.UpstreamRequest) {
	s.name = m.Method
	s.addAttribute("mcp.method.name", m.Method)
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
			s.addAttribute("gen_ai.prompt.name", value)
		case member.Name == "uri":
			s.addAttribute("mcp.resource.uri", value)
		}
	}
}

// setEntryPoint sets the attributes for the caller's entry point.
func (s *span) setEntryPoint(c call.Caller) {
	switch {
	case c.Depth > 0:
		s.addAttribute("network.transport", "unix")
		s.addAttribute("toolroom.depth", strconv.Itoa(c.Depth))
	case c.EntryPoint == "http":
		s.addAttribute("network.transport", "tcp")
		s.addAttribute("network.protocol.name", "http")
	case c.EntryPoint == "stdio":
		s.addAttribute("network.transport", "pipe")
	}
	if c.Modern {
		s.addAttribute("mcp.protocol.version", "2026-07-28")
	}
}

// endCall ends the span of a call with its outcome.
func (t *Tracer) endCall(s *span, res *call.Result, err error) {
	if err == nil && res.IsError() {
		s.errorType = "tool_error"
	}
	t.end(s, err)
}

// end ends a span, with the error of the call, and queues it for the collector if it is
// sampled. It does not wait.
func (t *Tracer) end(s *span, err error) {
	if !s.id.sampled {
		return
	}
	s.duration = time.Since(s.begin)
	var answered *call.MCPError
	switch {
	case errors.As(err, &answered):
		s.errorType, s.errorText = strconv.Itoa(answered.Code), answered.Message
		s.addAttribute("rpc.response.status_code", s.errorType)
	case err != nil:
		s.errorType = string(toolerr.CodeOf(err))
	}
	s.addAttribute("error.type", s.errorType)
	t.enqueue(s)
}
