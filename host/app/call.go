package app

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Call calls a tool by the name it is served under. args is encoded as JSON and must give an
// object; nil is an object without members.
//
// If the tool itself reports an error, the error is a *FailedError and the answer is returned, too.
// toolerr.CodeOf gives the code of every other error, among them TOOL_NOT_FOUND,
// INVALID_PARAMS (the arguments do not match the tool's schema), POLICY_DENIED,
// PENDING_APPROVAL, TIMEOUT and SERVER_OFFLINE.
func (h *Host) Call(ctx context.Context, name string, args any) (*Answer, error) {
	answer, err := h.core.Call(ctx, name, args)
	var failed *core.FailedError
	if errors.As(err, &failed) {
		err = &FailedError{Tool: failed.Tool, Answer: (*Answer)(answer)}
	}
	return (*Answer)(answer), err
}

// Answer is the result of a call.
type Answer struct {
	Text       string          // the text contents, joined by line ends
	Structured json.RawMessage // structuredContent; nil if there is none
	Details    json.RawMessage // _meta["toolroom/result"], an object with counts, exit code and so on; nil if there is none
	Code       toolerr.Code    // the error code that the tool gives; "" if it gives none
	IsError    bool            // the tool reports an error, which Text describes
	Raw        json.RawMessage // the whole result as the tool sent it, with images and other contents
}

// Decode stores the structured content in the value that v points to. Without structured content
// it decodes the text, which must be JSON. The error has the code RESULT_INVALID.
func (a *Answer) Decode(v any) error { return (*core.Answer)(a).Decode(v) }

// FailedError is the error of a call whose tool reports an error.
type FailedError struct {
	Tool   string
	Answer *Answer
}

// Error returns the text of the answer.
func (e *FailedError) Error() string { return e.failed().Error() }

// Unwrap returns a toolerr.Error with the code that the tool gives, or EXECUTION_ERROR.
func (e *FailedError) Unwrap() error { return e.failed().Unwrap() }

// failed returns the error as package core represents it.
func (e *FailedError) failed() *core.FailedError {
	return &core.FailedError{Tool: e.Tool, Answer: (*core.Answer)(e.Answer)}
}

// Session returns the tools of one server, or of all servers if server is "", as a
// mcpkit.Session: mcpkit.Import makes tools of it, which a program can rename, change
// and register. Calls pass all stages.
func (h *Host) Session(server string) mcpkit.Session { return h.core.Session(server) }
