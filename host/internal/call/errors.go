package call

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// An MCPError is a server's JSON-RPC error for a call.
type MCPError struct {
	Server  string
	Code    int
	Message string
	Object  json.RawMessage // the complete error object as received
}

// Error returns the server's name and message.
func (e *MCPError) Error() string {
	return fmt.Sprintf("server %s answered with error %d: %s", e.Server, e.Code, e.Message)
}

// Unwrap returns an error with the code PROTOCOL_ERROR.
func (e *MCPError) Unwrap() error { return toolerr.New(toolerr.ProtocolError, "%s", e.Message) }

// The phases of an ExecutionError.
const (
	PhaseConnect  = "connect"
	PhaseValidate = "validate"
	PhaseExecute  = "execute"
)

// An ExecutionError is the error of a call that could not be made.
type ExecutionError struct {
	Tool    string // served name
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

// A TimeoutError is the error of a call that reached its time limit.
type TimeoutError struct {
	Tool  string
	After time.Duration
}

// Error names the time limit and how to change it.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s did not answer within %v; narrow the call and try again", e.Tool, e.After)
}

// Unwrap returns context.DeadlineExceeded, whose code is TIMEOUT.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// The types of a ValidationError.
const (
	ArgsInvalid     = "args_invalid"
	ResultInvalid   = "result_invalid"
	PolicyViolation = "policy_violation"
)

// A ValidationError refuses an invalid call or result.
type ValidationError struct {
	Type   string // ArgsInvalid, ResultInvalid or PolicyViolation
	Tool   string // served name
	Detail string // the violation, and how to correct it
	Path   string // JSON pointer to the invalid value; "": the whole
	Cause  error  // determines the code; nil: the type does
}

// Error names the tool.
func (e *ValidationError) Error() string { return e.Tool + ": " + e.Detail }

// Unwrap returns Cause, or else an error with the code INVALID_PARAMS, RESULT_INVALID
// or POLICY_DENIED.
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
