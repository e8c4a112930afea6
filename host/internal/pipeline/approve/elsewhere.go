package approve

import (
	"bytes"
	"context"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// reservedQuestion is an approved call that is being carried out, and those that it is
// made within.
type reservedQuestion struct {
	tool   string
	still  func() bool // it is in the place that it was approved for
	within *reservedQuestion
}

type reservedQuestionKey struct{}

// bound is the context of an approved call, which is for one place.
func (s *Stage) bound(ctx context.Context, t *call.Tool, place []byte) context.Context {
	if s.cfg.Scope == nil {
		return ctx
	}
	outer, _ := ctx.Value(reservedQuestionKey{}).(*reservedQuestion)
	return context.WithValue(ctx, reservedQuestionKey{}, &reservedQuestion{t.Name, func() bool { return bytes.Equal(s.cfg.Scope(t).Bound, place) }, outer})
}

// Elsewhere returns why a call must not be carried out by who would do so now:
// it was approved, or one that it is made for was, and while it waited for its
// turn what it leads to has become another. Nil: it may be.
func Elsewhere(ctx context.Context) error {
	m, _ := ctx.Value(reservedQuestionKey{}).(*reservedQuestion)
	for ; m != nil; m = m.within {
		if !m.still() {
			return toolerr.New(toolerr.Conflict,
				"the configuration of %s changed after the approval, so the call was not executed; repeat it to ask for approval again", m.tool)
		}
	}
	return nil
}
