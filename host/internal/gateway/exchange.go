package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// refuse answers x with a JSON-RPC error of this code.
func refuse(x exchange, code int, message string) {
	object, err := jsonrpc.Marshal(map[string]any{"code": code, "message": message})
	if err != nil { // a number and a string can always be encoded
		return
	}
	x.fail(object)
}

// An exchange is one request, over any transport, and the way to answer it.
type exchange interface {
	// entryPoint returns http, stdio or socket.
	entryPoint() string
	// identity returns the id of the client; see call.Caller.
	identity() string
	// principal returns the owner of the request states that the client gets; other owners
	// cannot use them.
	principal() string
	// params returns the params as received.
	params() json.RawMessage
	// endWithServer returns a context that also ends when the server stops, and a function
	// that releases it.
	endWithServer(ctx context.Context) (context.Context, func())
	// notify sends a notification to the client before the answer.
	notify(method string, params json.RawMessage)
	// ask sends a request to a legacy client and waits for its result. A JSON-RPC error of
	// the client is a *call.MCPError.
	ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// answer replaces the result that mcp-go sends.
	answer(result json.RawMessage)
	// fail replaces mcp-go's answer by a JSON-RPC error object.
	fail(object json.RawMessage)
	// acknowledged returns a channel that is closed when the subscription stream is
	// acknowledged. It may be called once.
	acknowledged() <-chan struct{}
}

// stdioExchange is a request received by ServeStdio or ServeAs.
type stdioExchange struct {
	ctx        context.Context
	delegation *delegation // nil: the client calls for itself
}

// stdioID is the identity of the only client on stdio.
const stdioID = "stdio"

// entryPoint implements exchange: stdio, or socket for a delegation.
func (s stdioExchange) entryPoint() string { return s.delegation.entryPoint() }

// identity implements exchange: the id of the delegation, or stdioID.
func (s stdioExchange) identity() string { return s.delegation.identity() }

// principal implements exchange: the same as identity.
func (s stdioExchange) principal() string { return s.delegation.identity() }

// params implements exchange.
func (s stdioExchange) params() json.RawMessage { return wire.RawParams(s.ctx) }

// endWithServer returns ctx: ServeStdio ends it.
func (s stdioExchange) endWithServer(ctx context.Context) (context.Context, func()) {
	return ctx, func() {} // ServeStdio ends it
}

// notify implements exchange.
func (s stdioExchange) notify(method string, params json.RawMessage) {
	wire.Notify(s.ctx, method, params)
}

// ask implements exchange. It returns an *call.MCPError if the client answers with an
// error.
func (s stdioExchange) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	// The request uses the connection of s.ctx, and ends when ctx ends.
	result, fault, err := wire.Ask(withValuesOf(s.ctx, ctx), method, params)
	if err == nil && fault != nil {
		err = clientError(fault)
	}
	return result, err
}

// answer implements exchange.
func (s stdioExchange) answer(result json.RawMessage) { wire.SetRawResult(s.ctx, result) }

// acknowledged implements exchange.
func (s stdioExchange) acknowledged() <-chan struct{} { return wire.Acknowledged(s.ctx) }

// fail implements exchange.
func (s stdioExchange) fail(object json.RawMessage) { wire.SetRawError(s.ctx, object) }

// withValuesOf returns a context with the values of values, and with the end and deadline
// of ends.
func withValuesOf(values, ends context.Context) context.Context {
	return mixedContext{ends, values}
}

// mixedContext is the context of withValuesOf.
type mixedContext struct {
	context.Context
	values context.Context
}

// Value returns the value of the context values.
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

// exchangeKey is the context key of the *httpExchange of a request over HTTP.
type exchangeKey struct{}

// requestExchange returns the exchange of the request whose context is ctx. HTTPHandler
// and serve mark the contexts of their requests; any other context is a programming error,
// and requestExchange panics.
func requestExchange(ctx context.Context) exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*httpExchange); ok {
		return x
	}
	on, ok := ctx.Value(delegationKey{}).(*delegation)
	if !ok { // as the client on stdio, the request would have that client's rights
		panic("gateway: the context is not that of a request")
	}
	return stdioExchange{ctx, on}
}
