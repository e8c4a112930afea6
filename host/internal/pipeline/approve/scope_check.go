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
	tool       string
	scopeHolds func() bool // reports whether the tool's scope is still the approved one
	within     *approvedCall
}

// approvedCallKey is the context key of the *approvedCall.
type approvedCallKey struct{}

// withScope returns a context that carries the approved scope of a call of t, for
// CheckScope. Without Config.Scope it returns ctx.
func (s *Stage) withScope(ctx context.Context, t *call.Tool, scope []byte) context.Context {
	if s.cfg.Scope == nil {
		return ctx
	}
	outer, _ := ctx.Value(approvedCallKey{}).(*approvedCall)
	return context.WithValue(ctx, approvedCallKey{}, &approvedCall{t.Name, func() bool { return bytes.Equal(s.cfg.Scope(t).Identity, scope) }, outer})
}

// CheckScope returns CONFLICT if the call of ctx, or a call that contains it, was
// approved for another scope: the configuration changed while the call waited. Call it
// just before the call is made.
func CheckScope(ctx context.Context) error {
	m, _ := ctx.Value(approvedCallKey{}).(*approvedCall)
	for ; m != nil; m = m.within {
		if !m.scopeHolds() {
			return toolerr.New(toolerr.Conflict,
				"the configuration of %s changed after the approval, so the call was not executed; repeat it to ask for approval again", m.tool)
		}
	}
	return nil
}
