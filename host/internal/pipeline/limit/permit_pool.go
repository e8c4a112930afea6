package limit

import (
	"math"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// recentTime is the time after a caller's last call until it counts as absent.
const recentTime = time.Minute

// maxKnownCallers bounds the callers without running calls that a pool remembers.
const maxKnownCallers = 256

// permitPool holds the permits of one server, tool or caller, and the calls that wait for
// them.
type permitPool struct {
	account     callerAccount // set in the pool of a caller
	size        int
	held        int
	callers     map[callerAccount]*callerState
	running     map[callerAccount]int // number by account; without zeros
	waiting     []*callerState        // callers with waiting calls, the one that waits longest for its turn first
	bytes       int64                 // of all queues
	averageTime time.Duration
	refused     int64
}

// callerState is the state of a caller in a pool.
type callerState struct {
	account callerAccount // several callers can share it
	held    int
	seen    time.Time // time of the last begin or end of a call
	queue   []*waiter
}

// waiter is a call that waits for a permit.
type waiter struct {
	ready   chan struct{} // closed when the permit is granted
	granted bool
	bytes   int64
}

// newPermitPool returns a pool with size permits.
func newPermitPool(size int) *permitPool {
	return &permitPool{size: size, callers: map[callerAccount]*callerState{}, running: map[callerAccount]int{}}
}

// callerState returns the state of the caller who belongs to an account, and records that it
// was used now. It creates the state if necessary.
func (p *permitPool) callerState(key, account callerAccount, now time.Time) *callerState {
	c := p.callers[key]
	if c == nil {
		if len(p.callers) >= maxKnownCallers {
			p.removeIdleCallers()
		}
		c = &callerState{account: account}
		p.callers[key] = c
	}
	c.seen = now
	return c
}

// removeIdleCallers drops the callers without running and waiting calls, to bound the memory.
func (p *permitPool) removeIdleCallers() {
	for w, c := range p.callers {
		if c.held == 0 && len(c.queue) == 0 {
			delete(p.callers, w)
		}
	}
}

// canTake reports whether c can take a permit now: one is free, and if it is the last one
// and the account of c has running calls, it is not reserved for another caller
// (isReserved).
func (p *permitPool) canTake(c *callerState, now time.Time) bool {
	switch free := p.size - p.held; {
	case free <= 0:
		return false
	case free > 1 || p.running[c.account] == 0:
		return true
	}
	return !p.isReserved(c, now)
}

// isReserved reports whether the last free permit is reserved for another caller: one
// that has no running calls and was present recently, or, if c has no running calls
// either, one whose account has none while c's account has some.
func (p *permitPool) isReserved(c *callerState, now time.Time) bool {
	for w, other := range p.callers {
		switch {
		case other == c || other.held > 0:
		case c.held == 0 && p.running[other.account] > 0:
		case len(other.queue) > 0 || now.Sub(other.seen) < recentTime:
			return true
		default:
			delete(p.callers, w)
		}
	}
	return false
}

// take counts one more permit of a caller as held.
func (p *permitPool) take(c *callerState) {
	p.held++
	c.held++
	p.running[c.account]++
}

// takeBack takes a permit back from c and grants it to the next waiting call.
func (p *permitPool) takeBack(c *callerState, now time.Time) {
	p.held--
	c.held--
	if p.running[c.account]--; p.running[c.account] == 0 {
		delete(p.running, c.account)
	}
	c.seen = now
	p.grantFree(now)
}

// enqueue adds a waiting call to the queue of its caller.
func (p *permitPool) enqueue(c *callerState, w *waiter) {
	if len(c.queue) == 0 {
		p.waiting = append(p.waiting, c)
	}
	c.queue = append(c.queue, w)
	p.bytes += w.bytes
}

// removeWaiter removes a waiter that gave up from the queue of c.
func (p *permitPool) removeWaiter(c *callerState, w *waiter) {
	if i := slices.Index(c.queue, w); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
		p.bytes -= w.bytes
		p.removeIfIdle(c)
	}
}

// removeIfIdle removes c from p.waiting if it has no waiting calls.
func (p *permitPool) removeIfIdle(c *callerState) {
	if len(c.queue) > 0 {
		return
	}
	c.queue = nil
	if i := slices.Index(p.waiting, c); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// isBefore reports whether c is served before other: its account has fewer running calls,
// or as many and c itself has fewer.
func (p *permitPool) isBefore(c, other *callerState) bool {
	mine, theirs := p.running[c.account], p.running[other.account]
	return mine < theirs || mine == theirs && c.held < other.held
}

// grantFree gives the free permits to waiting calls: among the callers that can take one, to
// the one with the fewest running calls (isBefore), and among equals to the one that has
// waited longest for its turn.
func (p *permitPool) grantFree(now time.Time) {
	for p.held < p.size {
		next := -1
		var kept *callerState // from whom the last permit is kept, as from all like it
		for i, c := range p.waiting {
			if next >= 0 && !p.isBefore(c, p.waiting[next]) || kept != nil && kept.account == c.account && kept.held == 0 && c.held == 0 {
				continue
			}
			if p.canTake(c, now) {
				next = i
			} else {
				kept = c
			}
		}
		if next < 0 {
			return
		}
		c := p.waiting[next]
		w := c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		p.bytes -= w.bytes
		p.waiting = append(slices.Delete(p.waiting, next, next+1), c)
		p.removeIfIdle(c)
		p.take(c)
		w.granted = true
		close(w.ready)
	}
}

// recordDuration updates the moving average of the durations of calls, of which the last
// one counts an eighth.
func (p *permitPool) recordDuration(took time.Duration) {
	if p.averageTime == 0 {
		p.averageTime = took
		return
	}
	p.averageTime += (took - p.averageTime) / 8
}

// queueFullError counts a refused call and returns RATE_LIMITED with the time after which
// half of the calls ahead are probably done.
func (p *permitPool) queueFullError(t *call.Tool, ahead int) error {
	p.refused++
	wait := p.averageTime * time.Duration(1+ahead/2) / time.Duration(max(1, p.size))
	wait = min(max(wait, 100*time.Millisecond), time.Minute)
	seconds := math.Ceil(wait.Seconds()*10) / 10
	return toolerr.New(toolerr.RateLimited, "%s is busy (%d running, %d of yours waiting); try again in %gs, or make fewer calls at the same time",
		t.Name, p.held, ahead, seconds).With("retryAfterMs", int64(seconds*1000))
}
