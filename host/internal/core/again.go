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

// unfinished is a change of the configuration that did not come about as a
// whole, since servers that are configured otherwise now do not start so.
type unfinished struct {
	wanted config.Config
	faults map[string]error // by server, which stays as it was
}

// err says what stays as it was; nil: nothing does.
func (u unfinished) err() (kept error) {
	for _, name := range slices.Sorted(maps.Keys(u.faults)) {
		kept = errors.Join(kept, fmt.Errorf("server %s does not start with its new configuration; the old one keeps running", name))
	}
	return kept
}

// left remembers what is left of a change, and tells of it once.
func (a *App) left(u unfinished) {
	var before map[string]error
	if last := a.unfinished.Load(); last != nil {
		before = last.faults
	}
	for _, name := range slices.Sorted(maps.Keys(u.faults)) {
		if before[name] == nil {
			a.tell(fmt.Sprintf("server %s keeps running: the new one does not start: %v", name, u.faults[name]))
		}
	}
	a.stale.set(u.err())
	if len(u.faults) == 0 {
		a.unfinished.Store(nil)
		return
	}
	a.unfinished.Store(&u)
}

// called is told which server a call is for: one that is to be replaced by
// another is a reason to try that again. The call does not wait for it.
func (a *App) called(server string) {
	if u := a.unfinished.Load(); u != nil && u.faults[server] != nil {
		select {
		case a.wanted <- struct{}{}:
		default: // it is going to be
		}
	}
}

// patience is how long after a failure a change is tried again: at first, at
// most, each time twice as long as the last; and at least, when there are
// calls.
type patience struct{ first, most, least time.Duration }

// retries finish, in the background, what a change left unfinished.
type retries struct {
	app  *App
	work sync.WaitGroup
	end  context.CancelFunc // nil: there are none
}

// begin tries again until nothing is left, or stop is called.
func (r *retries) begin(ctx context.Context) {
	if r.app.unfinished.Load() == nil {
		return
	}
	ctx, r.end = context.WithCancel(ctx)
	r.work.Go(func() { r.app.finish(ctx) })
}

// stop ends that, also while a server is being started.
func (r *retries) stop() {
	if r.end != nil {
		r.end()
		r.work.Wait()
		r.end = nil
	}
}

func (a *App) finish(ctx context.Context) {
	pause := a.patience.first
	for u := a.unfinished.Load(); u != nil && ctx.Err() == nil; u = a.unfinished.Load() {
		least, most := time.NewTimer(min(pause, a.patience.least)), time.NewTimer(pause)
		select {
		case <-least.C:
			select {
			case <-most.C:
			case <-a.wanted:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		least.Stop()
		most.Stop()
		if pause = min(2*pause, a.patience.most); ctx.Err() != nil {
			return
		}
		if err := a.apply(ctx, u.wanted); err != nil { // it was possible before
			a.stale.set(err)
			return
		}
	}
}
