package mcpkit

import (
	"context"
	"errors"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// ErrorResult returns err as a result of t: its text in the content, its code
// and extra values in _meta.
func (t *Tool) ErrorResult(err error) *CallResult {
	res := errorResult(err)
	t.setProgramData(res, nil, err)
	return res
}

// errorResult returns err as a result that belongs to no tool.
func errorResult(err error) *CallResult {
	res := &CallResult{IsError: true, Code: toolerr.CodeOf(err), Err: err}
	res.Text = strings.ToValidUTF8(err.Error(), "\uFFFD")
	if strings.TrimSpace(res.Text) == "" {
		res.Text = "failed with " + string(res.Code)
	}
	(&Tool{}).setProgramData(res, nil, err)
	return res
}

// renderError makes an error result of at most budget bytes of text. r, unless
// nil, adds the work done before the error.
func (t *Tool) renderError(budget int, r *Result, err error, collected *notes) *CallResult {
	res := errorResult(err)
	var meta any
	if r != nil {
		meta, res.Rows, res.Images = r.Meta, r.Rows, r.Images
		if r.Text != "" {
			res.Text += "\n\n" + strings.ToValidUTF8(r.Text, "\uFFFD")
		}
	}
	res.Text = collected.surround(res.Text, budget)
	t.setProgramData(res, meta, err)
	return res
}

// withCode returns err if it has a code. Otherwise it returns an error with a
// clear message and a code: TIMEOUT or CANCELLED for an error of the context,
// else EXECUTION_ERROR or a code derived from the system's error.
func (t *Tool) withCode(ctx context.Context, err error) error {
	var coded *toolerr.Error
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &callerror.TimeoutError{Tool: t.Name(), After: t.def.Timeout, Cause: err}
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return toolerr.New(toolerr.Cancelled, "%s was cancelled before it finished: %w", t.Name(), err)
	case toolerr.CodeOf(err) == toolerr.ExecutionError:
		return &callerror.ExecutionError{Tool: t.Name(), Phase: "execute", Message: err.Error(), Cause: err}
	}
	return err
}
