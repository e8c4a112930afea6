// Package call is the narrow waist of the host: what a tool, a call and its
// result are between the front doors and the servers behind them, and how
// stages are put around the route. It holds types, and the clock of a call, so that a
// stage imports nothing else of the host.
//
// Everything that is not the router's business stays the bytes it was:
// definitions, parameters and results.
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

// A Tool is one entry of the catalogue. It is immutable.
type Tool struct {
	Name     string // as served: ^[a-zA-Z0-9_-]{1,64}$
	Server   string // the server it belongs to
	Original string // the server's own name for it

	// Unrenamed is the name under which the tool would be served without renaming in
	// the configuration; "": Name. Rules for either name apply to both.
	Unrenamed string

	// Definition is the server's own entry of tools/list, byte for byte but
	// for the name, which is the served one.
	Definition json.RawMessage

	Traits
}

// Traits hold the hints of a tool's definition about calling it. The zero value means
// no hints.
type Traits struct {
	Input  json.RawMessage // schema of the arguments
	Output json.RawMessage // schema of structuredContent; nil: none

	ReadOnly   bool // changes nothing
	Idempotent bool // a second call with the same arguments changes nothing more

	// What tools made with our kit, and those who say it like them, tell a
	// host: that they check their arguments, how long a call may take, how
	// many may run at once, and that a call must not queue behind others.
	Validates     bool
	Timeout       time.Duration // 0: not said
	OwnsDeadline  bool          // says that there is none, since it ends calls itself
	MaxConcurrent int           // 0: not said
	Control       bool
}

// Repeatable reports whether sending a call again does no harm.
func (t Traits) Repeatable() bool { return t.ReadOnly || t.Idempotent }

// A Caller identifies the client of a call and the form of its answers.
type Caller struct {
	Door   string // "stdio", "http", "cli"; an agent's is that of who called it
	Modern bool   // speaks protocol version 2026-07-28 or later

	// ID tells callers apart: two requests with the same one come from the
	// same client. "" is nobody in particular.
	ID string

	// User is the signed-in user, as the identity provider names them; "": none.
	User string

	// Account is the name under which calls are counted if a client can have any
	// number of IDs or use several entry points; "": ID.
	Account string

	// Capabilities are the client's declared capabilities as received; nil: none.
	Capabilities json.RawMessage

	LogLevel string // the least level of log messages it wants; "": not said

	Depth int // how many agents' calls this one is made within

	Agent string // names the agent that calls, where Depth is not 0; "": not known

	Profile string // the part of the catalogue it is offered; "": the whole

	// Tools, unless nil, says by served names which tools an agent may use that a
	// call of this caller's starts: no more than the conversation that the call is
	// made in. That its own calls are within that, is for the door to see to.
	Tools func(name string) bool

	// Turn is the answer of a model that the call is made for, where the door
	// knows of such; "": it does not.
	Turn string
}

// Counted returns the name under which the caller's calls are counted.
func (c Caller) Counted() string { return cmp.Or(c.Account, c.Door+"/"+c.ID) }

// A Request is one call of a tool.
type Request struct {
	Tool   *Tool
	Params json.RawMessage // of tools/call, as received: name, arguments, _meta …
	Caller Caller

	// OnNotify, unless nil, takes the notifications that belong to this call,
	// with the caller's own progress token. It is called by one goroutine at
	// a time, in order, and never after the handler has returned.
	OnNotify func(method string, params json.RawMessage)

	// Ask, unless nil, asks the caller's client what the server asks. It may
	// be called by any goroutine, and not after the handler has returned.
	Ask Ask

	// Reason is why the call needs approval, for the stage that sees to it.
	Reason string

	// Sent, unless nil, is set when the call may have had an effect: it has
	// got past all stages to who carries it out.
	Sent *atomic.Bool

	split     bool
	arguments json.RawMessage
	malformed error
}

// WithArguments returns the request with other arguments.
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
	other.Params, other.split, other.arguments, other.malformed = params, false, nil, nil
	return &other, nil
}

// Arguments returns the arguments of the call, as received; {} where there
// are none. The first use splits Params, so that of a request that several
// goroutines are to see one must have asked before.
func (r *Request) Arguments() (json.RawMessage, error) {
	if !r.split {
		r.split = true
		r.arguments, r.malformed = argumentsOf(r.Params)
	}
	return r.arguments, r.malformed
}

func argumentsOf(params json.RawMessage) (json.RawMessage, error) {
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

// A Result is the answer to a call: the result member of the response, good
// or with isError, as the server sent it.
type Result struct {
	Raw json.RawMessage

	// Names holds the known member names of Raw; 0: unknown. Code that changes Raw
	// must create a new Result.
	Names jsonrpc.NameSet
}

// AsksForInput reports whether the result is a question that the caller is to
// answer in another round (resultType input_required, protocol 2026-07-28).
func (r *Result) AsksForInput() bool {
	if !r.Names.MayBeIncomplete() || !bytes.Contains(r.Raw, []byte(`"input_required"`)) {
		return false
	}
	members, err := jsonrpc.Members(r.Raw)
	return err == nil && slices.ContainsFunc(members, func(m jsonrpc.Member) bool {
		return m.Name == "resultType" && string(m.Value) == `"input_required"`
	})
}

// IsError reports whether the tool says that it failed.
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

// A Handler carries out a call. Its error is a failure to do so: an *MCPError
// when the server answered with a JSON-RPC error, else an error whose code
// toolerr.CodeOf tells. A tool that failed is a Result.
type Handler func(ctx context.Context, req *Request) (*Result, error)

// A Stage wraps a handler with one concern.
type Stage func(next Handler) Handler

// Chain puts stages around h; the first is the outermost, so it sees a
// request first and its result last.
func Chain(h Handler, stages ...Stage) Handler {
	for _, stage := range slices.Backward(stages) {
		h = stage(h)
	}
	return h
}
