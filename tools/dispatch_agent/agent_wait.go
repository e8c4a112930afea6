package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// errLeft is returned to a cancelled call while other calls still wait for its
// agent.
var errLeft = toolerr.New(toolerr.Cancelled, "this call was cancelled; the agent continues because another call waits for it")

// wait adds calls, which may be negative, to the number of calls that wait for
// the agent, and returns the new number.
func (a *agent) wait(calls int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiters += calls
	return a.waiters
}

// attend waits at most patience for the agent to end, and reports progress
// meanwhile. It returns nil if the agent ended or patience ran out. If ctx is
// cancelled and no other call waits for the agent, attend stops it.
func (a *agent) attend(ctx context.Context, patience time.Duration) error {
	a.wait(1)
	left := sync.OnceValue(func() int { return a.wait(-1) })
	defer left()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	beat := time.NewTicker(2 * time.Second)
	defer beat.Stop()
	for {
		line, changed := a.doing()
		mcpkit.Progress(ctx, a.took().Seconds(), 0, line)
		select {
		case <-a.done:
			return nil
		case <-timer.C:
			return nil
		case <-ctx.Done():
			if left() > 0 && !errors.Is(context.Cause(ctx), mcpkit.ErrStopped) {
				return errLeft
			}
			a.cancel(context.Cause(ctx))
			<-a.done
			return context.Cause(ctx)
		case <-changed:
		case <-beat.C:
		}
	}
}
