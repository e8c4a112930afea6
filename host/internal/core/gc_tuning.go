package core

import (
	"context"
	"os"
	"runtime/debug"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// The garbage collector's percentages (GOGC): busyGCPercent at the start and after the
// first call, idleGCPercent between them.
const (
	busyGCPercent = 400
	idleGCPercent = 100
)

// gcTuning lets the heap grow to 16 instead of 4 MiB between two collections while the
// host works. A call leaves no garbage behind for long, so the cost is proportional to
// the number of collections. Under load the host's peak memory is about 8 MiB higher. An
// unused host stays small. GOGC in the environment takes precedence.
type gcTuning struct {
	mu   sync.Mutex
	busy bool // there was a call
}

// tuneGC sets the percentage unless the environment does.
func tuneGC(percent int) {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(percent)
	}
}

// stage returns a stage that tunes the garbage collector with the first call.
func (g *gcTuning) stage() call.Stage {
	var first sync.Once
	return func(next call.Handler) call.Handler {
		return func(ctx context.Context, req *call.Request) (*call.Result, error) {
			first.Do(func() {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.busy = true
				tuneGC(busyGCPercent)
			})
			return next(ctx, req)
		}
	}
}

// BeginStartUp tunes the garbage collector for the start of a host: a short start needs no
// collection. It is called before Open, and EndStartUp some time after.
func BeginStartUp() { tuneGC(busyGCPercent) }

// EndStartUp ends the tuning of BeginStartUp, unless there was a call.
func (a *App) EndStartUp() {
	a.gc.mu.Lock()
	defer a.gc.mu.Unlock()
	if !a.gc.busy {
		tuneGC(idleGCPercent)
	}
}
