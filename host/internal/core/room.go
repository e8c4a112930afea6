package core

import (
	"context"
	"os"
	"runtime/debug"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// busyPercent is the garbage collector's percentage (GOGC) once calls are
// made.
const busyPercent = 400

// room is a stage that lets the heap grow to 16 instead of 4 MiB between two
// collections, from the first call on. A call leaves nothing behind, so what
// collecting costs goes by how often it is done; under load the host's peak is
// some 8 MiB higher for it. A host that nobody calls stays small. What the
// environment says stands.
func room() call.Stage {
	var first sync.Once
	return func(next call.Handler) call.Handler {
		return func(ctx context.Context, req *call.Request) (*call.Result, error) {
			first.Do(func() {
				if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
					debug.SetGCPercent(busyPercent)
				}
			})
			return next(ctx, req)
		}
	}
}
