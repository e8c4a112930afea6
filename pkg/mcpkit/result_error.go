package mcpkit

import (
	"context"
	"errors"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// ErrorResult renders err as a result of t: its text in the content, its code
// and extra values in _meta.
func (t *Tool) ErrorResult(err error) *CallResult {
	res := errorResult(err)
	t.setProgramData(res, nil, err)
	return res
}

// errorResult renders err as a result without a tool.
func errorResult(err error) *CallResult {
	res := &CallResult{IsError: true, Code: toolerr.CodeOf(err), Err: err}
	res.Text = strings.ToValidUTF8(err.Error(), "\uFFFD")
	if strings.TrimSpace(res.Text) == "" {
		res.Text = "failed with " + string(res.Code)
	}
	(&Tool{}).setProgramData(res, nil, err)
	return res
}

func (t *Tool) renderError(budget int, r *Result, err error, collected *notes) *CallResult {
	res := errorResult(err)
	var meta any
	if r != nil {
		meta, res.Rows, res.Images = r.Meta, r.Rows, r.Images
		if r.Text != "" {
			res.Text += "\n\n" + strings.ToValidUTF8(r.Text, "\uFFFD")
		}
	}
	res.Text = collected.addTo(res.Text, budget)
	t.setProgramData(res, meta, err)
	return res
}

// withTimeoutCode replaces an error of the context, or one without a code, by
// an error with a clear message.
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
