// Package callerror has the error types of a tool call, for programs that call
// tools. toolerr.CodeOf returns the code of each.
package callerror

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// FaultType says who caused a ValidationError: the caller, the tool or a rule.
type FaultType string

// The kinds of fault.
const (
	ArgsInvalid     FaultType = "args_invalid"     // the caller sent invalid arguments
	ResultInvalid   FaultType = "result_invalid"   // the tool returned an invalid result
	PolicyViolation FaultType = "policy_violation" // a rule forbids the call
)

// ValidationError is the error of a call with invalid arguments, of an invalid
// result, or of a call that a rule forbids.
type ValidationError struct {
	Type   FaultType
	Tool   string
	Detail string         // every fault, one a line
	Path   string         // JSON pointer of the first fault
	Err    *toolerr.Error // with the code for the client
}

func (e *ValidationError) Error() string { return e.Err.Error() }

// Unwrap returns the toolerr.Error with the stable code.
func (e *ValidationError) Unwrap() error { return e.Err }

// ExecutionError is the failure of a tool's function without a code: a plain Go
// error, or a panic.
type ExecutionError struct {
	Tool    string
	Phase   string // "execute", "validate" or "connect"
	Message string
	Cause   error
}

func (e *ExecutionError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *ExecutionError) Unwrap() error { return e.Cause }

// TimeoutError is the error of a call that exceeded its deadline.
type TimeoutError struct {
	Tool  string
	After time.Duration // the tool's timeout; 0: the deadline was not the tool's own
	Cause error         // the tool's error; nil: the deadline itself
}

func (e *TimeoutError) Error() string {
	within := "in time"
	if e.After > 0 {
		within = "within " + e.After.String()
	}
	return fmt.Sprintf("%s did not finish %s: narrow the path or pattern and call again", e.Tool, within)
}

// Unwrap makes the error match context.DeadlineExceeded, or the Cause, and have
// the code TIMEOUT.
func (e *TimeoutError) Unwrap() []error {
	return []error{cmp.Or(e.Cause, context.DeadlineExceeded), toolerr.New(toolerr.Timeout, "%s", e.Error())}
}

// Panic is the error of a call whose tool panicked. Its text reveals neither
// the value nor the stack, which are for the log only.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return "internal error" }
