package call

import (
	"context"
	"encoding/json"
)

// A Kind is the kind of items in a server's list.
type Kind string

// The kinds, each with the member of the list's result that holds the items.
const (
	Tools     Kind = "tools"
	Resources Kind = "resources"
	Templates Kind = "resourceTemplates"
	Prompts   Kind = "prompts"
)

// An Ask passes a server's question (elicitation/create,
// sampling/createMessage, roots/list) to the client whose request it belongs
// to, and returns the client's answer as it came. Its error is an *MCPError
// when the client answered with one.
type Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

// A Message is a request that is no call of a tool, on its way to a server:
// resources/read, prompts/get, completion/complete, resources/subscribe ….
type Message struct {
	Server string
	Method string
	Params json.RawMessage // as received, but with the server's own names
	Caller Caller

	// OnNotify and Ask are as in Request.
	OnNotify func(method string, params json.RawMessage)
	Ask      Ask
}

// A Forwarder carries out a message; see Handler for its error.
type Forwarder func(ctx context.Context, m *Message) (json.RawMessage, error)

type ownQuestion struct{}

// WithOwnQuestion marks a question that is asked with the returned context as
// the host's own: it comes from no server.
func WithOwnQuestion(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownQuestion{}, true)
}

// IsOwnQuestion reports whether a question is the host's own, such as one for
// approval. A server's question never is, whatever it says.
func IsOwnQuestion(ctx context.Context) bool { return ctx.Value(ownQuestion{}) != nil }
