package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// errStillAwaited is returned to a cancelled call while other calls still wait
// for its agent.
var errStillAwaited = toolerr.New(toolerr.Cancelled, "this call was cancelled; the agent continues because another call waits for it")

// addWaiters adds n, which may be negative, to the number of calls that wait
// for the agent, and returns the new number.
func (a *agent) addWaiters(n int) (waiters int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiters += n
	return a.waiters
}

// waitForEnd waits at most limit for the agent to end, and reports progress
// meanwhile. It returns nil if the agent ended or the limit was reached. If ctx
// is cancelled and no other call waits for the agent, it stops the agent and
// returns the cause; otherwise errStillAwaited.
func (a *agent) waitForEnd(ctx context.Context, limit time.Duration) error {
	a.addWaiters(1)
	left := sync.OnceValue(func() int { return a.addWaiters(-1) })
	defer left()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	beat := time.NewTicker(2 * time.Second)
	defer beat.Stop()
	for {
		line, changed := a.progressLine()
		mcpkit.Progress(ctx, a.runTime().Seconds(), 0, line)
		select {
		case <-a.done:
			return nil
		case <-timer.C:
			return nil
		case <-ctx.Done():
			if left() > 0 && !errors.Is(context.Cause(ctx), mcpkit.ErrStopped) {
				return errStillAwaited
			}
			a.cancel(context.Cause(ctx))
			<-a.done
			return context.Cause(ctx)
		case <-changed:
		case <-beat.C:
		}
	}
}
