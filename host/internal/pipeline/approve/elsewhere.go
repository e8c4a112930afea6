package approve

import (
	"bytes"
	"context"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// approvedCall is an approved call that is being made, with the approved calls that
// contain it.
type approvedCall struct {
	tool   string
	still  func() bool // reports whether it is still in the place of its approval
	within *approvedCall
}

type approvedCallKey struct{}

// bound returns a context that carries the place of an approved call.
func (s *Stage) bound(ctx context.Context, t *call.Tool, place []byte) context.Context {
	if s.cfg.Scope == nil {
		return ctx
	}
	outer, _ := ctx.Value(approvedCallKey{}).(*approvedCall)
	return context.WithValue(ctx, approvedCallKey{}, &approvedCall{t.Name, func() bool { return bytes.Equal(s.cfg.Scope(t).Bound, place) }, outer})
}

// Elsewhere returns an error if the call, or a call that contains it, was approved for
// another place: the place changed while the call waited. Call it just before the call
// is made.
func Elsewhere(ctx context.Context) error {
	m, _ := ctx.Value(approvedCallKey{}).(*approvedCall)
	for ; m != nil; m = m.within {
		if !m.still() {
			return toolerr.New(toolerr.Conflict,
				"the configuration of %s changed after the approval, so the call was not executed; repeat it to ask for approval again", m.tool)
		}
	}
	return nil
}
