package mcpkit

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// Hints are the annotations of a tool. All four are always sent, because
// clients assume the worst case for a missing one.
type Hints struct {
	ReadOnly    bool // does not change its environment
	Destructive bool // may overwrite or remove something; false for a read-only tool
	Idempotent  bool // repeating a call with the same arguments has no further effect
	OpenWorld   bool // accesses things outside the roots: network, other programs
}

// Def is the definition of a tool. It does not contain the schema, which
// NewTool makes from the type of the arguments.
type Def struct {
	Name        string // matches ^[a-zA-Z0-9_-]{1,64}$
	Title       string // for people
	Description string // for the model; the most important facts first
	Hints       Hints

	// Aliases are further names that tools/call accepts; tools/list omits them.
	Aliases []string

	// RefuseUnknown makes an unknown argument an error instead of a note. A
	// likely misspelling of an argument is always an error.
	RefuseUnknown bool

	Timeout       time.Duration // deadline of a call, carried by its ctx; 0: none
	MaxConcurrent int           // calls of this tool running at once; 0: no limit
	MaxTokens     int           // result budget in tokens of 4 bytes; 0: DefaultMaxTokens

	// Control marks a tool that controls work which other calls started, so
	// that its calls must not wait for those calls to finish.
	Control bool

	// Output is the zero value of the type of Result.Meta, a struct or a map;
	// nil: the tool has no metadata, though its errors still carry their code.
	Output any

	// Row is the zero value of an element of Result.Rows; nil: the tool has no
	// rows. With Output it gives the outputSchema of Structured.
	Row any

	// Meta has further members of the definition's _meta.
	Meta map[string]any
}

// Tool is one callable tool: a definition, the schemas made from its types, and
// its function. It is immutable and safe for concurrent calls.
type Tool struct {
	def        Def
	definition json.RawMessage // the tool's entry in tools/list
	input      *schema         // of the arguments; nil for an imported tool
	output     *schema         // of Def.Output, or of the data; nil: none
	row        *schema         // of an element of Result.Rows; nil: the tool has none

	// returnsData is set by NewStructuredTool: the result is structuredContent,
	// and the text shows the same data.
	returnsData bool
	// addsStructured is set by Structured: a text tool that also returns
	// structuredContent.
	addsStructured bool

	// runFunc decodes checked arguments and calls the tool's function.
	runFunc func(ctx context.Context, args *jsonNode) (*Result, error)
	remote  *importSource // of an imported tool, instead of the schemas and runFunc
	wrapped Handler       // the tool with the middleware of With; nil: none
}

// Name returns the name under which the tool is served.
func (t *Tool) Name() string { return t.def.Name }

// Def returns the definition that the tool was made from.
func (t *Tool) Def() Def { return t.def }

// Definition returns the tool's entry in tools/list as JSON. It must not be
// changed.
func (t *Tool) Definition() json.RawMessage { return t.definition }

// Schema returns the input schema. If strictOpenAI is set, it returns the form
// for OpenAI's strict mode, and lost lists what that form cannot express.
func (t *Tool) Schema(strictOpenAI bool) (schema json.RawMessage, lost []string) {
	if t.remote != nil {
		if strictOpenAI {
			lost = []string{"the schema comes from another server"}
		}
		return t.remote.input, lost
	}
	if strictOpenAI {
		return t.input.strictJSON()
	}
	return t.input.JSON(), nil
}

// OutputSchema returns the schema of structuredContent, or nil if the tool
// returns only text.
func (t *Tool) OutputSchema() json.RawMessage {
	switch {
	case t.remote != nil:
		return t.remote.output
	case t.returnsData:
		return t.output.JSON()
	case t.addsStructured:
		return t.structuredSchema().JSON()
	}
	return nil
}

// Structured returns a copy of t that declares an outputSchema and, in addition
// to the text, returns the whole answer as structuredContent: the rows as
// "results", or else the text as "text", and the metadata. It is for programs:
// some clients pass structuredContent to the model instead of the text. A tool
// made by NewStructuredTool or Import is returned unchanged.
func (t *Tool) Structured() (*Tool, error) {
	if t.returnsData || t.remote != nil {
		return t, nil
	}
	out := *t
	out.addsStructured = true
	var err error
	out.definition, err = out.makeDefinition()
	return &out, err
}

// Call checks args against the schema, decodes them, runs the tool and returns
// its result, of at most Budget(ctx), or of the tool's own budget if ctx has
// none. Every failure is a result with IsError, including a Go error, a missing
// result and a panic. args may be nil.
func (t *Tool) Call(ctx context.Context, args json.RawMessage) (res *CallResult) {
	if t.wrapped != nil {
		return t.wrapped(ctx, t, args)
	}
	return t.callUnwrapped(ctx, args)
}

// With returns a copy of t whose calls pass through mw, the first outermost.
func (t *Tool) With(mw ...Middleware) *Tool {
	wrapped := *t
	inner := func(ctx context.Context, _ *Tool, args json.RawMessage) *CallResult { return t.Call(ctx, args) }
	wrapped.wrapped = wrapHandler(inner, append([]Middleware{recoverPanic}, mw...)...)
	return &wrapped
}

// callUnwrapped runs a call as Call does, without the middleware of With.
func (t *Tool) callUnwrapped(ctx context.Context, args json.RawMessage) (res *CallResult) {
	if _, ok := wire.BudgetOf(ctx); !ok {
		ctx = wire.WithBudget(ctx, t.def.MaxTokens)
	}
	collected := &notes{}
	ctx = context.WithValue(ctx, notesKey{}, collected)
	defer func() {
		if value := recover(); value != nil {
			res = panicResult(t, value)
		}
	}()
	if t.remote != nil {
		return t.callRemote(ctx, args)
	}
	n, err := t.validate(ctx, args)
	if err != nil {
		return t.renderResult(ctx, nil, err, collected)
	}
	r, err := t.runFunc(ctx, n)
	return t.renderResult(ctx, r, err, collected)
}

// warnf logs, for the tool's author, a fault that the client is not told about.
func (t *Tool) warnf(format string, args ...any) {
	slog.Warn(t.Name() + ": " + fmt.Sprintf(format, args...))
}
