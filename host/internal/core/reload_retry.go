package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
)

// partialReload is a reload that was only partly applied, because changed servers did
// not start with their new configuration.
type partialReload struct {
	config   config.Config
	failures map[string]error // by server; these servers run with their previous configuration
}

// err returns an error that names the servers that still run with their previous
// configuration; nil if there are none.
func (u partialReload) err() (kept error) {
	for _, name := range slices.Sorted(maps.Keys(u.failures)) {
		kept = errors.Join(kept, fmt.Errorf("server %s does not start with its new configuration; the old one keeps running", name))
	}
	return kept
}

// recordPartialReload stores which servers still run with their previous configuration,
// and notifies the user once.
func (a *App) recordPartialReload(u partialReload) {
	var before map[string]error
	if last := a.partialReload.Load(); last != nil {
		before = last.failures
	}
	for _, name := range slices.Sorted(maps.Keys(u.failures)) {
		if before[name] == nil {
			a.notify(fmt.Sprintf("server %s keeps running: the new one does not start: %v", name, u.failures[name]))
		}
	}
	a.reloadError.set(u.err())
	if len(u.failures) == 0 {
		a.partialReload.Store(nil)
		return
	}
	a.partialReload.Store(&u)
}

// requestReplacement asks the retry goroutine to try again soon to replace a server, if
// its replacement failed. It does not block.
func (a *App) requestReplacement(server string) {
	if u := a.partialReload.Load(); u != nil && u.failures[server] != nil {
		select {
		case a.retryRequested <- struct{}{}:
		default: // a retry is already requested
		}
	}
}

// backoff is the pause before a reload is retried: first after the first failure, then
// twice the previous pause, at most max. Calls of the server can shorten the pause to
// min.
type backoff struct{ first, max, min time.Duration }

// reloadRetry retries the unfinished part of a reload in the background.
type reloadRetry struct {
	app  *App
	work sync.WaitGroup
	end  context.CancelFunc // nil: not running
}

// begin starts a goroutine that retries until every server is replaced, or stop is called
// or ctx ends. It does nothing after a complete reload.
func (r *reloadRetry) begin(ctx context.Context) {
	if r.app.partialReload.Load() == nil {
		return
	}
	ctx, r.end = context.WithCancel(ctx)
	r.work.Go(func() { r.app.finishReload(ctx) })
}

// stop ends the retries, even while a server is starting, and waits.
func (r *reloadRetry) stop() {
	if r.end != nil {
		r.end()
		r.work.Wait()
		r.end = nil
	}
}

// finishReload tries to start the servers of a partial reload, with increasing pauses,
// until no server is left, ctx ends, or the configuration as a whole is refused, which
// reloadError then says. A call of such a server shortens the pause.
func (a *App) finishReload(ctx context.Context) {
	pause := a.backoff.first
	for u := a.partialReload.Load(); u != nil && ctx.Err() == nil; u = a.partialReload.Load() {
		least, most := time.NewTimer(min(pause, a.backoff.min)), time.NewTimer(pause)
		select {
		case <-least.C:
			select {
			case <-most.C:
			case <-a.retryRequested:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		least.Stop()
		most.Stop()
		if pause = min(2*pause, a.backoff.max); ctx.Err() != nil {
			return
		}
		if err := a.apply(ctx, u.config); err != nil { // it succeeded for the configuration as a whole before
			a.reloadError.set(err)
			return
		}
	}
}
