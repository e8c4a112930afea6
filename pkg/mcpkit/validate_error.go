package mcpkit

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// FaultType tells who caused a ValidationError: the caller, the tool or a rule.
type FaultType string

// The kinds of fault.
const (
	ArgsInvalid     FaultType = "args_invalid"     // the caller sent invalid arguments
	ResultInvalid   FaultType = "result_invalid"   // the tool returned an invalid result
	PolicyViolation FaultType = "policy_violation" // a rule forbids the call
)

// ErrInvalidArguments matches, by errors.Is, every error about invalid
// arguments, of a tool made here or of a call through the host.
var ErrInvalidArguments = toolerr.ErrInvalidArguments

// ValidationError reports invalid arguments or an invalid result. It wraps the
// toolerr.Error with the code for the client.
type ValidationError struct {
	Type   FaultType
	Tool   string
	Detail string // every fault, one a line
	Path   string // JSON pointer of the first fault
	err    *toolerr.Error
}

func (e *ValidationError) Error() string { return e.err.Error() }

// Unwrap returns the toolerr.Error with the stable code.
func (e *ValidationError) Unwrap() error { return e.err }

// ExecutionError reports a failure of a tool's function without a code: a plain
// Go error, or a panic.
type ExecutionError struct {
	Tool    string
	Phase   string // execute, validate or connect
	Message string
	Cause   error
}

func (e *ExecutionError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *ExecutionError) Unwrap() error { return e.Cause }

// TimeoutError reports that a call exceeded its deadline. After is 0 if the
// deadline was not the tool's own.
type TimeoutError struct {
	Tool  string
	After time.Duration
	Cause error // the tool's error; nil: the deadline itself
}

func (e *TimeoutError) Error() string {
	within := "in time"
	if e.After > 0 {
		within = "within " + e.After.String()
	}
	return fmt.Sprintf("%s did not finish %s: narrow the path or pattern and call again", e.Tool, within)
}

// Unwrap makes the error match context.DeadlineExceeded and carry the code
// TIMEOUT.
func (e *TimeoutError) Unwrap() []error {
	return []error{cmp.Or(e.Cause, context.DeadlineExceeded), toolerr.New(toolerr.Timeout, "%s", e.Error())}
}

// validate parses and checks the arguments of a call, and adds notes about
// tolerated deviations to ctx.
func (t *Tool) validate(ctx context.Context, args []byte) (*node, error) {
	if len(strings.TrimSpace(string(args[:min(len(args), 16)]))) == 0 && len(args) <= 16 {
		args = []byte("{}")
	}
	n, err := parseJSON(args)
	if err != nil {
		c := &checker{faults: []fault{{text: "the arguments are " + err.Error()}}}
		return nil, c.err(t)
	}
	if n.isNull() {
		n = &node{kind: '{', raw: []byte("{}")}
	}
	c := &checker{tolerant: true, refuseUnknown: t.def.RefuseUnknown}
	n = c.check(t.input, n, nil)
	if len(c.faults) > 0 {
		return nil, c.err(t)
	}
	const maxNotes = 10
	if len(c.renamed) > 0 {
		Notef(ctx, "%s", strings.Join(c.renamed[:min(len(c.renamed), maxNotes)], ", "))
	}
	if len(c.nulls) > 0 {
		NoteFirstf(ctx, "treated as not given: %s", strings.Join(c.nulls[:min(len(c.nulls), maxNotes)], ", "))
	}
	for i, note := range c.notes {
		if i == maxNotes {
			NoteFirstf(ctx, "%d more arguments were unknown or converted", len(c.notes)-i+c.droppedNotes)
			break
		}
		NoteFirstf(ctx, "%s", note)
	}
	return n, nil
}

// err returns one error for all faults.
func (c *checker) err(t *Tool) error {
	code := toolerr.MissingParameter
	var lines []string
	pointers := []string{}
	for i, f := range c.faults {
		if !f.missing {
			code = toolerr.InvalidParams
		}
		if i < maxFaults {
			lines = append(lines, f.text)
		}
		if i < maxFaults && f.path != "" {
			pointers = append(pointers, quotable(f.path))
		}
	}
	total := len(c.faults) + c.droppedFaults
	if total > len(lines) {
		lines = append(lines, fmt.Sprintf("and %d more", total-len(lines)))
	}
	detail := strings.Join(lines, "\n")
	text := detail
	if total > 1 {
		text = fmt.Sprintf("%d invalid arguments for %s:\n%s", total, t.Name(), detail)
	}
	if signature := t.input.signature(); signature != "" {
		text += fmt.Sprintf("\n%s takes: %s", t.Name(), signature)
	}
	return &ValidationError{
		Type: ArgsInvalid, Tool: t.Name(), Detail: detail, Path: c.faults[0].path,
		err: toolerr.New(code, "%s", text).With("invalid", pointers),
	}
}

// decodeArgs decodes checked arguments into a value of type A.
func decodeArgs[A any](t *Tool, n *node) (A, error) {
	var args A
	if err := decode(t.input, n, reflect.ValueOf(&args).Elem(), nil); err != nil {
		return args, &ValidationError{Type: ArgsInvalid, Tool: t.Name(), Detail: err.Error(),
			err: toolerr.New(toolerr.InvalidParams, "%w", err)}
	}
	return args, nil
}

// Panic is the error of a call whose function panicked. Its text reveals
// neither the value nor the stack, which are for the log only.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return "internal error" }
