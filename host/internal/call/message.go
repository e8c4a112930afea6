package call

import (
	"context"
	"encoding/json"
)

// A ListKind is the kind of the items in a server's list.
type ListKind string

// The kinds. Each is the name of the result's member that contains the items.
const (
	Tools     ListKind = "tools"
	Resources ListKind = "resources"
	Templates ListKind = "resourceTemplates"
	Prompts   ListKind = "prompts"
)

// An Ask sends a server's question (elicitation/create, sampling/createMessage,
// roots/list) to the client whose request caused it, and returns the client's answer
// unchanged. The error is an *MCPError if the client answered with one.
type Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

// An UpstreamRequest is a request to a server that is not a tool call: resources/read,
// prompts/get, completion/complete, resources/subscribe and so on.
type UpstreamRequest struct {
	Server string
	Method string
	Params json.RawMessage // as received, but with the server's names
	Caller Caller

	// OnNotify and Ask have the same meaning as in Request.
	OnNotify func(method string, params json.RawMessage)
	Ask      Ask
}

// A Forwarder sends m to m.Server and returns the server's result unchanged. The error is an
// *MCPError if the server returned a JSON-RPC error, otherwise one with a code; see
// toolerr.CodeOf.
type Forwarder func(ctx context.Context, m *UpstreamRequest) (json.RawMessage, error)

// askingServer is the context key of the name of the server that asks a question.
type askingServer struct{}

// WithAskingServer returns a context for the questions of a server.
func WithAskingServer(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, askingServer{}, name)
}

// AskingServer returns the name of the server that asks a question; "" for the host's own
// questions.
func AskingServer(ctx context.Context) string {
	name, _ := ctx.Value(askingServer{}).(string)
	return name
}

// hostQuestion is the context key that marks a question of the host itself.
type hostQuestion struct{}

// WithHostQuestion marks questions with the returned context as the host's own: no
// server asks them.
func WithHostQuestion(ctx context.Context) context.Context {
	return context.WithValue(ctx, hostQuestion{}, true)
}

// IsHostQuestion reports whether a question is the host's own, such as a request for
// approval. A server's question cannot have this mark.
func IsHostQuestion(ctx context.Context) bool { return ctx.Value(hostQuestion{}) != nil }
