package mcpkit

import (
	"context"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Image is one picture of a result.
type Image struct {
	Data []byte
	MIME string // image/png, …
}

// Result is what a tool's function returns.
type Result struct {
	Text   string // header line first
	Images []Image
	Meta   any // small metadata for structuredContent; fits Def.Output
	Rows   any // slice of objects, for one-shot --structured
}

// CallResult is the outcome of one call, good or bad, ready for the wire.
type CallResult struct {
	Text       string          // what the model reads, notes included, within the budget
	Images     []Image         // those that fit the message
	Structured json.RawMessage // an object, or nil: none
	IsError    bool
	Code       toolerr.Code // "" unless IsError
	Rows       any          // as the tool returned them
	Err        error        // the cause of IsError, for logs; may wrap a *Panic
}

// JSON returns the members of a CallToolResult (content,
// structuredContent, isError) as one object, at most MaxMessage bytes long.
func (r *CallResult) JSON() json.RawMessage { return nil }

// MaxMessage is the hard bound of a message in bytes, images and envelope
// included.
const MaxMessage = 1 << 20

// ErrorResult renders err as a result of t: its text, and its code and extra
// values as structuredContent that fits the tool's outputSchema.
func (t *Tool) ErrorResult(err error) *CallResult { return ErrorResult(err) }

// ErrorResult renders err as a result of no tool in particular.
func ErrorResult(err error) *CallResult {
	return &CallResult{Text: err.Error(), IsError: true, Code: toolerr.CodeOf(err), Err: err}
}

// Notef adds a line "note: …" to the end of the result of the call that ctx
// belongs to. The same note is shown once. Outside a call it does nothing.
func Notef(ctx context.Context, format string, args ...any) {}

// Panic is the error of a call whose function panicked. Its text says
// nothing of the value or the stack, which are for the log only.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return "internal error" }
