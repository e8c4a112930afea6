package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// refuse answers with a JSON-RPC error.
func refuse(x exchange, code int, message string) {
	object, err := jsonrpc.Marshal(map[string]any{"code": code, "message": message})
	if err != nil { // a number and a string can always be encoded
		return
	}
	x.fail(object)
}

// An exchange is one request, over any transport, and the way to answer it.
type exchange interface {
	entryPoint() string
	identity() string // of the client, see call.Caller
	principal() string
	params() json.RawMessage
	endWithServer(ctx context.Context) (context.Context, func()) // ends when the server stops
	notify(method string, params json.RawMessage)
	ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) // of a legacy client
	answer(result json.RawMessage)                                                           // replaces mcp-go's answer
	fail(object json.RawMessage)                                                             // replaces mcp-go's answer by a JSON-RPC error
	acknowledged() <-chan struct{}                                                           // closed when a subscription stream is acknowledged; may be called once
}

// stdioExchange is a request received by ServeStdio or ServeAs.
type stdioExchange struct {
	ctx        context.Context
	delegation *delegation // nil: the client calls for itself
}

// stdioID is the identity of the only client on stdio.
const stdioID = "stdio"

func (s stdioExchange) entryPoint() string      { return s.delegation.entryPoint() }
func (s stdioExchange) identity() string        { return s.delegation.identity() }
func (s stdioExchange) principal() string       { return s.delegation.identity() }
func (s stdioExchange) params() json.RawMessage { return wire.RawParams(s.ctx) }
func (s stdioExchange) endWithServer(ctx context.Context) (context.Context, func()) {
	return ctx, func() {} // ServeStdio ends it
}
func (s stdioExchange) notify(method string, params json.RawMessage) {
	wire.Notify(s.ctx, method, params)
}
func (s stdioExchange) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	// The request uses the connection of s.ctx, and ends when ctx ends.
	result, fault, err := wire.Ask(withValuesOf(s.ctx, ctx), method, params)
	if err == nil && fault != nil {
		err = clientError(fault)
	}
	return result, err
}
func (s stdioExchange) answer(result json.RawMessage) { wire.SetRawResult(s.ctx, result) }
func (s stdioExchange) acknowledged() <-chan struct{} { return wire.Acknowledged(s.ctx) }
func (s stdioExchange) fail(object json.RawMessage)   { wire.SetRawError(s.ctx, object) }

// withValuesOf returns a context with the values of one context and the end of
// another.
func withValuesOf(values, ends context.Context) context.Context {
	return mixedContext{ends, values}
}

// mixedContext is the context of withValuesOf.
type mixedContext struct {
	context.Context
	values context.Context
}

func (m mixedContext) Value(key any) any { return m.values.Value(key) }

// clientError returns the error object of a client's answer as a *call.MCPError, or
// another error if it is malformed.
func clientError(object json.RawMessage) error {
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(object, &e); err != nil {
		return fmt.Errorf("the client's error is malformed: %w", err)
	}
	return &call.MCPError{Server: "client", Code: e.Code, Message: e.Message, Object: object}
}

// exchangeKey is the context key of the *httpExchange of a request.
type exchangeKey struct{}

// exchangeOf returns the exchange of a request: the one in ctx over HTTP, else that of
// a pair of streams.
func requestExchange(ctx context.Context) exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*httpExchange); ok {
		return x
	}
	on, _ := ctx.Value(delegationKey{}).(*delegation)
	return stdioExchange{ctx, on}
}
