// Package call defines tools, calls and their results as all parts of the host see
// them, between its entry points and the servers, and how stages wrap the route to a
// server. It has only types and the clock of a call, so that a stage needs no other
// package of the host.
//
// Definitions, parameters and results stay unchanged JSON texts, except for the
// members that the host handles.
package call

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Tool is an entry of the catalog. It is immutable.
type Tool struct {
	Name     string // served name: ^[a-zA-Z0-9_-]{1,64}$
	Server   string // name of its server
	Original string // the server's name for it

	// Unrenamed is the name under which the tool would be served without renaming in
	// the configuration; "": Name. Rules for either name apply to both.
	Unrenamed string

	// Definition is the server's entry of tools/list, unchanged except for the name,
	// which is the served one.
	Definition json.RawMessage

	Traits

	Unlisted *Unlisted // nil: the server has listed the tool
}

// Traits hold the hints of a tool's definition about calling it. The zero value means
// no hints.
type Traits struct {
	Input  json.RawMessage // schema of the arguments
	Output json.RawMessage // schema of structuredContent; nil: none

	ReadOnly   bool // calls change nothing
	Idempotent bool // a second call with the same arguments changes nothing more

	// Hints of tools made with toolroom's kit, or with the same members: that they
	// check their arguments, the time limit of a call, the number of concurrent calls,
	// and that a call must not wait behind others.
	Validates     bool
	Timeout       time.Duration // 0: none
	OwnsDeadline  bool          // there is no time limit: the tool ends calls itself
	MaxConcurrent int           // 0: none
	Control       bool
}

// IsRepeatable reports whether a repeated call does no harm.
func (t Traits) IsRepeatable() bool { return t.ReadOnly || t.Idempotent }

// A Caller identifies the client of a call and the form of its answers.
type Caller struct {
	EntryPoint string // "stdio", "http" or "cli"; for an agent's calls that of the agent's caller
	Modern     bool   // uses protocol version 2026-07-28 or later

	// ID identifies the client: two requests with the same ID come from the same
	// client. "" means no particular client.
	ID string

	// User is the identity provider's name of the signed-in user; "": none.
	User string

	// Subject identifies the signed-in user among all issuers, by issuer and subject of
	// the access token; "": none, or the token has no subject. A name in User can be
	// given to another person later.
	Subject string

	// Token returns the access token of the signed-in user, for its exchange at the
	// issuer; nil: none. The token must not be sent to a server. It is a function so
	// that no message contains it.
	Token func() string

	// Account is the name under which calls are counted if a client can have any
	// number of IDs or use several entry points; "": ID.
	Account string

	// Capabilities are the client's declared capabilities as received; nil: none.
	Capabilities json.RawMessage

	LogLevel string // the least level of log messages it wants; "": not said

	Depth int // number of agents through which the call is made

	Agent string // name of the calling agent if Depth is not 0; "": unknown

	Profile string // name of the profile that limits the offered tools; "": all tools

	// Tools, unless nil, reports by served name which tools an agent may use that one
	// of the caller's calls starts: no more than the caller's conversation. The entry
	// point checks the caller's own calls.
	Tools func(name string) bool

	// ModelTurn identifies the answer of a model that contains the call, if the entry point
	// knows it; "": unknown.
	ModelTurn string
}

// AccountName returns the name under which the caller's calls are counted: Account, or else
// the entry point and id.
func (c Caller) AccountName() string { return cmp.Or(c.Account, c.EntryPoint+"/"+c.ID) }

// Elicitation reports which modes of elicitation the client has declared: forms,
// and links (URL mode). An empty declaration means forms.
func (c Caller) Elicitation() (forms, links bool) {
	var capabilities struct {
		Elicitation map[string]json.RawMessage `json:"elicitation"`
	}
	if json.Unmarshal(c.Capabilities, &capabilities) != nil || capabilities.Elicitation == nil {
		return false, false
	}
	url := capabilities.Elicitation["url"]
	links = len(url) > 0 && string(url) != "null"
	_, forms = capabilities.Elicitation["form"]
	return forms || !links, links
}

// A Request is one call of a tool.
type Request struct {
	Tool   *Tool
	Params json.RawMessage // of tools/call, as received: name, arguments, _meta …
	Caller Caller

	// OnNotify, unless nil, gets the notifications of this call, with the caller's
	// progress token. It is called by one goroutine at a time, in order, and never
	// after the handler has returned.
	OnNotify func(method string, params json.RawMessage)

	// Ask, unless nil, sends a server's question to the caller's client. Any goroutine
	// may call it, but not after the handler has returned.
	Ask Ask

	// Reason is the reason why the call needs approval, for the approval stage.
	Reason string

	// Dispatched, unless nil, is set when the call may have had an effect: it has
	// passed all stages and reached the server or executor.
	Dispatched *atomic.Bool

	isParsed   bool
	arguments  json.RawMessage
	parseError error
}

// WithArguments returns a copy of the request with other arguments. It returns an error if
// Params is no object.
func (r *Request) WithArguments(arguments json.RawMessage) (*Request, error) {
	params := r.Params
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	params, err := jsonrpc.SetMember(params, "arguments", arguments)
	if err != nil {
		return nil, err
	}
	other := *r
	other.Params, other.isParsed, other.arguments, other.parseError = params, false, nil, nil
	return &other, nil
}

// Arguments returns the arguments of the call as received, or {}; INVALID_PARAMS if Params
// is no object. The first use parses Params: call it once before several goroutines use the
// request.
func (r *Request) Arguments() (json.RawMessage, error) {
	if !r.isParsed {
		r.isParsed = true
		r.arguments, r.parseError = parseArguments(r.Params)
	}
	return r.arguments, r.parseError
}

// parseArguments returns the arguments in the params of tools/call, {} if there are
// none. It returns INVALID_PARAMS if params is not an object.
func parseArguments(params json.RawMessage) (json.RawMessage, error) {
	none := json.RawMessage(`{}`)
	if len(params) == 0 {
		return none, nil
	}
	members, err := jsonrpc.Members(params)
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "params of tools/call: %w", err)
	}
	for _, m := range members {
		if m.Name == "arguments" && string(m.Value) != "null" {
			return m.Value, nil
		}
	}
	return none, nil
}

// A Result is the result member of the response to a call, as the server sent it, also
// with isError.
type Result struct {
	Raw json.RawMessage

	// Names holds the known member names of Raw; 0: unknown. Code that changes Raw
	// must create a new Result.
	Names jsonrpc.NameSet
}

// RequiresInput reports whether the result is a question that the caller must answer
// in another request (resultType input_required, protocol version 2026-07-28).
func (r *Result) RequiresInput() bool {
	if !r.Names.MayBeIncomplete() || !bytes.Contains(r.Raw, []byte(`"input_required"`)) {
		return false
	}
	members, err := jsonrpc.Members(r.Raw)
	return err == nil && slices.ContainsFunc(members, func(m jsonrpc.Member) bool {
		return m.Name == "resultType" && string(m.Value) == `"input_required"`
	})
}

// IsError reports whether the result has isError set.
func (r *Result) IsError() bool {
	if !r.Names.MayHave("isError") || !bytes.Contains(r.Raw, []byte(`"isError"`)) {
		return false
	}
	members, err := jsonrpc.Members(r.Raw)
	if err != nil {
		return false
	}
	for _, m := range members {
		if m.Name == "isError" {
			return string(m.Value) == "true"
		}
	}
	return false
}

// A Handler handles a call. A tool that failed is a Result. An error means that the
// call could not be made: an *MCPError if the server returned a JSON-RPC error,
// otherwise an error with a code, see toolerr.CodeOf.
type Handler func(ctx context.Context, req *Request) (*Result, error)

// A Stage adds one concern to a handler.
type Stage func(next Handler) Handler

// Chain wraps h in stages. The first stage is the outermost: it gets a request first
// and the result last.
func Chain(h Handler, stages ...Stage) Handler {
	for _, stage := range slices.Backward(stages) {
		h = stage(h)
	}
	return h
}
