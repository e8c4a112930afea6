package upstream

import (
	"context"
	"time"
)

// rootsApplyTimeout is the time that a server has to apply roots before the next call. Servers
// such as server-filesystem do not say when they have: they check the directories after the
// answer, and refuse all files meanwhile. A host that starts a server for a call would always
// be too early.
const rootsApplyTimeout = 100 * time.Millisecond

// recordRootsAnswer records that the server was told its roots now. It does nothing for bundled
// tools, which wait themselves, and during a call, which then waits for the answer.
func (c *conn) recordRootsAnswer() {
	if !c.cfg.KillsOwnTree && !c.isBusy() {
		c.rootsAnswered.Store(int64(time.Since(c.since)) + 1)
	}
}

// awaitRoots waits until the last answer to roots/list is rootsApplyTimeout ago, or until ctx or
// the connection ends.
func (c *conn) awaitRoots(ctx context.Context) {
	answered := time.Duration(c.rootsAnswered.Load())
	wait := answered + rootsApplyTimeout - time.Since(c.since)
	if answered == 0 || wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-c.dead:
	}
}
