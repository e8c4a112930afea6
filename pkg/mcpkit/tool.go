package mcpkit

import (
	"context"
	"encoding/json"
	"time"
)

// Hints are the annotations of a tool. All four are always sent, because a
// client takes a missing one for the worst case.
type Hints struct {
	ReadOnly    bool // changes nothing
	Destructive bool // may overwrite or remove; false for a read-only tool
	Idempotent  bool // the same call again changes nothing more
	OpenWorld   bool // reaches beyond the roots: network, other programs
}

// Def is what a tool says about itself, apart from its arguments' type.
type Def struct {
	Name        string // ^[a-zA-Z0-9_-]{1,64}$
	Title       string
	Description string // what the model reads; key facts first
	Hints       Hints

	// Aliases are unadvertised names that tools/call takes as well.
	Aliases []string

	// RefuseUnknown makes an unknown argument an error instead of a note. A
	// near miss of a real argument is an error either way.
	RefuseUnknown bool

	Timeout       time.Duration // the tool's own deadline, carried by ctx; 0: none
	MaxConcurrent int           // calls that may run at once; 0: no bound of its own
	MaxTokens     int           // result budget in tokens of 4 bytes; 0: DefaultMaxTokens

	// Control says that the tool looks after what other calls started, so
	// that its calls must not wait until those are over.
	Control bool

	// Output is the zero value of the struct that results carry as Meta. nil:
	// the tool has no metadata; its errors still carry their code.
	Output any

	// Row is the zero value of an element of Result.Rows; nil: the tool has
	// no rows. With Output it makes the outputSchema of Structured.
	Row any

	// Meta is added to the definition's _meta.
	Meta map[string]any
}

// DefaultMaxTokens is the result budget of a tool that names none.
const DefaultMaxTokens = 12_000

// Tool is one callable tool: a definition, the schemas made from its types,
// and its function. It is immutable and safe for concurrent calls.
type Tool struct {
	def        Def
	definition json.RawMessage
	input      *schema
	output     *schema // nil: none declared
	row        *schema // of an element of Result.Rows; nil: the tool has none
	data       bool    // the answer is structuredContent, the text its rendering
	structured bool    // a text tool that also answers with structuredContent
	run        func(ctx context.Context, args *node) (*Result, error)
	remote     *remote // in place of schemas and run: the tool is another server's
	through    Handler // nil: no middleware of its own
}

// Name returns the name the tool is served under.
func (t *Tool) Name() string { return t.def.Name }

// Def returns the definition the tool was made from.
func (t *Tool) Def() Def { return t.def }

// Definition returns the tool's entry in tools/list.
func (t *Tool) Definition() json.RawMessage { return t.definition }

// Schema returns the input schema. With strictOpenAI it is the variant that
// OpenAI's strict mode takes, and lost says in plain words what that variant
// cannot express.
func (t *Tool) Schema(strictOpenAI bool) (schema json.RawMessage, lost []string) {
	if t.remote != nil {
		if strictOpenAI {
			lost = []string{"the schema comes from another server"}
		}
		return t.remote.input, lost
	}
	if strictOpenAI {
		return t.input.strict()
	}
	return t.input.JSON(), nil
}

// OutputSchema returns the schema of structuredContent, or nil: the tool
// answers with text alone.
func (t *Tool) OutputSchema() json.RawMessage {
	switch {
	case t.remote != nil:
		return t.remote.output
	case t.data:
		return t.output.JSON()
	case t.structured:
		return t.wholeSchema().JSON()
	}
	return nil
}

// Structured returns a tool like t that declares an outputSchema and answers
// with structuredContent that holds the whole answer, besides the text: the
// rows as "results", or else the text as "text", and the metadata. It is for
// programs: some clients pass structuredContent to the model instead of the
// text. A tool that NewStructuredTool or a session made is returned as it is.
func (t *Tool) Structured() (*Tool, error) {
	if t.data || t.remote != nil {
		return t, nil
	}
	out := *t
	out.structured = true
	var err error
	out.definition, err = out.define()
	return &out, err
}

// Call checks args against the schema, decodes them, runs the tool and
// renders what it returned within Budget(ctx), or within the tool's own
// budget where ctx has none. It never fails otherwise than by a result with
// IsError: a Go error, a missing result and a panic become one too.
func (t *Tool) Call(ctx context.Context, args json.RawMessage) (res *CallResult) {
	if t.through != nil {
		return t.through(ctx, t, args)
	}
	return t.call(ctx, args)
}

// With returns a tool like t whose every call goes through mw, the first
// outermost.
func (t *Tool) With(mw ...Middleware) *Tool {
	wrapped := *t
	inner := func(ctx context.Context, _ *Tool, args json.RawMessage) *CallResult { return t.Call(ctx, args) }
	wrapped.through = Chain(inner, append([]Middleware{Recover}, mw...)...)
	return &wrapped
}

func (t *Tool) call(ctx context.Context, args json.RawMessage) (res *CallResult) {
	if !hasBudget(ctx) {
		ctx = WithBudget(ctx, t.def.MaxTokens)
	}
	said := &notes{}
	ctx = context.WithValue(ctx, notesKey{}, said)
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
		return t.render(ctx, nil, err, said)
	}
	r, err := t.run(ctx, n)
	return t.render(ctx, r, err, said)
}
