package middleware

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// An Observation holds the metrics of one finished call.
type Observation struct {
	Tool  string
	Took  time.Duration // duration of the call
	Code  toolerr.Code  // of a failed call; otherwise ""
	Bytes int           // size of the encoded result
}

// Metrics calls observe after every call, from several goroutines at once.
func Metrics(observe func(ctx context.Context, o Observation)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, t *mcpkit.Tool, args json.RawMessage) *mcpkit.CallResult {
			begin := time.Now()
			res := next(ctx, t, args)
			observe(ctx, Observation{Tool: t.Name(), Took: time.Since(begin), Code: res.Code, Bytes: len(res.JSON())})
			return res
		}
	}
}
