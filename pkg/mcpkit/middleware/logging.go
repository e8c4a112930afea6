package middleware

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

// Logging logs every call: the tool, the time it took, and the code of a
// failure. It does not log arguments and results, which may be secret.
func Logging(to *slog.Logger) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, t *mcpkit.Tool, args json.RawMessage) *mcpkit.CallResult {
			begin := time.Now()
			res := next(ctx, t, args)
			said := []slog.Attr{slog.String("tool", t.Name()), slog.Duration("took", time.Since(begin))}
			level := slog.LevelInfo
			if res.IsError {
				level = slog.LevelWarn
				said = append(said, slog.String("code", string(res.Code)))
			}
			to.LogAttrs(ctx, level, "call", said...)
			return res
		}
	}
}
