package mcpkit

import (
	"context"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// renderResult makes a call's result from the values that the tool's function
// returned, with the collected notes and within Budget(ctx).
func (t *Tool) renderResult(ctx context.Context, r *Result, err error, collected *notes) *CallResult {
	if err == nil && r == nil {
		err = toolerr.New(toolerr.Internal, "%s returned neither a result nor an error: this is a bug in the tool", t.Name())
	}
	budget := Budget(ctx)
	if err != nil {
		return t.renderError(budget, r, t.withCode(ctx, err), collected)
	}
	res := &CallResult{Images: r.Images, Rows: r.Rows, ExitStatus: r.ExitStatus, Text: strings.ToValidUTF8(r.Text, "\uFFFD")}
	if !t.returnsData {
		res.Text = collected.surround(res.Text, budget)
		t.setProgramData(res, r.Meta, nil)
		return res
	}
	res.Notes = collected.joined()
	members, misfit := t.fitOutput(r.Meta, true)
	if misfit != nil {
		return t.renderError(budget, nil, &callerror.ValidationError{
			Type: callerror.ResultInvalid, Tool: t.Name(), Detail: misfit.Error(),
			Err: toolerr.New(toolerr.ResultInvalid, "the result of %s does not fit its outputSchema: %w", t.Name(), misfit),
		}, collected)
	}
	res.Structured = objectNode(members).raw
	if size := max(len(res.Text), len(res.Structured)); size > budget {
		return t.renderError(budget, nil, toolerr.New(toolerr.TooLarge,
			"the result of %s has %d bytes, more than the limit of %d: ask for less in one call", t.Name(), size, budget).
			With("bytes", size), collected)
	}
	return res
}
