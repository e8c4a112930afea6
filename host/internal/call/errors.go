package call

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// An MCPError is a JSON-RPC error that a server answered a call with.
type MCPError struct {
	Server  string
	Code    int
	Message string
	Object  json.RawMessage // the whole error object as received
}

// Error names the server and repeats its words.
func (e *MCPError) Error() string {
	return fmt.Sprintf("server %s answered with error %d: %s", e.Server, e.Code, e.Message)
}

// Unwrap makes toolerr.CodeOf say PROTOCOL_ERROR.
func (e *MCPError) Unwrap() error { return toolerr.New(toolerr.ProtocolError, "%s", e.Message) }

// The phases of an ExecutionError.
const (
	PhaseConnect  = "connect"
	PhaseValidate = "validate"
	PhaseExecute  = "execute"
)

// An ExecutionError is a call that could not be carried out.
type ExecutionError struct {
	Tool    string // as served
	Phase   string // PhaseConnect, PhaseValidate or PhaseExecute
	Message string
	Cause   error
}

// Error describes the failure and its cause.
func (e *ExecutionError) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap returns the cause, which carries the code.
func (e *ExecutionError) Unwrap() error { return e.Cause }

// A TimeoutError is a call that was given up after its time.
type TimeoutError struct {
	Tool  string
	After time.Duration
}

// Error says how long was waited, and what to do.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s did not answer within %v; narrow the call and try again", e.Tool, e.After)
}

// Unwrap makes it a deadline's error, whose code is TIMEOUT.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// The types of a ValidationError.
const (
	ArgsInvalid     = "args_invalid"
	ResultInvalid   = "result_invalid"
	PolicyViolation = "policy_violation"
)

// A ValidationError is the refusal of a call or result that is not valid.
type ValidationError struct {
	Type   string // ArgsInvalid, ResultInvalid or PolicyViolation
	Tool   string // as served
	Detail string // what is wrong and what to do
	Path   string // JSON pointer to it; "": the whole
	Cause  error  // with a code of its own; nil: the code of the type
}

// Error names the tool.
func (e *ValidationError) Error() string { return e.Tool + ": " + e.Detail }

// Unwrap makes toolerr.CodeOf say INVALID_PARAMS, RESULT_INVALID or
// POLICY_DENIED, unless there is a cause that says it better.
func (e *ValidationError) Unwrap() error {
	if e.Cause != nil {
		return e.Cause
	}
	code := toolerr.InvalidParams
	switch e.Type {
	case ResultInvalid:
		code = toolerr.ResultInvalid
	case PolicyViolation:
		code = toolerr.PolicyDenied
	}
	return toolerr.New(code, "%s", e.Detail)
}
