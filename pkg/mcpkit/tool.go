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

	// Output is the zero value of the struct that results carry as Meta. It
	// becomes the outputSchema. nil: the tool has no metadata and declares no
	// outputSchema; its errors still carry their code.
	Output any

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
	run        func(ctx context.Context, args *node) (*Result, error)
}

// NewTool makes a tool that answers with text. A is the struct of its
// arguments; its tags become the input schema (see the package comment). Every fault of the
// definition or of the tags is returned at once.
func NewTool[A any](d Def, fn func(ctx context.Context, args A) (*Result, error)) (*Tool, error) {
	return nil, nil
}

// NewStructuredTool makes a tool whose whole answer is data: R becomes both
// structuredContent and, rendered, the text. R is rendered by its method
// String where it has one, else as JSON. An R that is not an object is sent
// as {"result": R}.
func NewStructuredTool[A, R any](d Def, fn func(ctx context.Context, args A) (R, error)) (*Tool, error) {
	return nil, nil
}

// Name returns the name the tool is served under.
func (t *Tool) Name() string { return t.def.Name }

// Def returns the definition the tool was made from.
func (t *Tool) Def() Def { return t.def }

// Definition returns the tool's entry in tools/list.
func (t *Tool) Definition() json.RawMessage { return t.definition }

// Schema returns the input schema. With strictOpenAI it is the variant that
// OpenAI's strict mode takes, and lost names in plain words what that variant
// cannot say.
func (t *Tool) Schema(strictOpenAI bool) (schema json.RawMessage, lost []string) { return nil, nil }

// OutputSchema returns the schema of structuredContent, or nil.
func (t *Tool) OutputSchema() json.RawMessage { return nil }

// Call checks args against the schema, decodes them, runs the tool and
// renders what it returned within Budget(ctx). It never fails otherwise than
// by a result with IsError: a Go error, a nil result and a panic become one too.
func (t *Tool) Call(ctx context.Context, args json.RawMessage) *CallResult { return nil }
