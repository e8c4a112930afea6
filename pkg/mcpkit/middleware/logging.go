package middleware

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

// Logging logs every call to logger: the tool, the duration, and the code of a
// failure, at Info or for failures at Warn. It does not log arguments and
// results, which may be secret.
func Logging(logger *slog.Logger) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, t *mcpkit.Tool, args json.RawMessage) *mcpkit.CallResult {
			begin := time.Now()
			res := next(ctx, t, args)
			attrs := []slog.Attr{slog.String("tool", t.Name()), slog.Duration("took", time.Since(begin))}
			level := slog.LevelInfo
			if res.IsError {
				level = slog.LevelWarn
				attrs = append(attrs, slog.String("code", string(res.Code)))
			}
			logger.LogAttrs(ctx, level, "call", attrs...)
			return res
		}
	}
}
