package call

import (
	"context"
	"sync"
	"time"
)

// clockKey is the context key of the *clock of a call.
type clockKey struct{}

// clock measures the time that one call takes, without pauses, and limits it if it has a
// timer. The clocks of nested calls form a list in the context, so that a step of a chain
// that waits for its user does not use up the time of the chain.
type clock struct {
	outer *clock // clock of the enclosing call; nil: none
	limit time.Duration
	timer *time.Timer // nil: no limit

	mu     sync.Mutex
	spent  time.Duration // time before since
	since  time.Time     // last start
	pauses int           // number of active pauses
}

// WithTimeout limits the time of a call. It returns a context that is cancelled after
// d with late as its cause. Pauses do not count, because the user's time to answer a
// question does not belong to the call. The context has no deadline, because pauses move
// it; see TimeLeft. Call cancel when the call has ended.
func WithTimeout(ctx context.Context, d time.Duration, late error) (timed context.Context, cancel context.CancelFunc) {
	timed, end := context.WithCancelCause(ctx)
	timed, c := withClock(timed)
	c.limit, c.timer = d, time.AfterFunc(d, func() { end(late) })
	return timed, func() {
		c.timer.Stop()
		end(nil)
	}
}

// MeasureTime returns a context for one call, and a function that returns the time
// that the call has taken so far, without pauses.
func MeasureTime(ctx context.Context) (measured context.Context, took func() time.Duration) {
	measured, c := withClock(ctx)
	return measured, c.took
}

// withClock returns a context with a new running clock inside the one of ctx. A pause of
// the new clock also stops the outer one, not the other way round.
func withClock(ctx context.Context) (context.Context, *clock) {
	outer, _ := ctx.Value(clockKey{}).(*clock)
	c := &clock{outer: outer, since: time.Now()}
	return context.WithValue(ctx, clockKey{}, c), c
}

// TimeLeft returns the time until ctx ends, by its deadline and the limits of
// WithTimeout, if no pause follows. It is at least 0. limited is false if there is no
// limit.
func TimeLeft(ctx context.Context) (least time.Duration, limited bool) {
	if at, ok := ctx.Deadline(); ok {
		least, limited = time.Until(at), true
	}
	innermost, _ := ctx.Value(clockKey{}).(*clock)
	for c := innermost; c != nil; c = c.outer {
		if c.timer == nil {
			continue
		}
		if left := c.limit - c.took(); !limited || left < least {
			least, limited = left, true
		}
	}
	return max(0, least), limited
}

// PauseClocks stops the clocks of the call of ctx and of the calls that contain it,
// until resume is called. Pauses may overlap.
func PauseClocks(ctx context.Context) (resume func()) {
	innermost, _ := ctx.Value(clockKey{}).(*clock)
	for c := innermost; c != nil; c = c.outer {
		c.stop()
	}
	return sync.OnceFunc(func() {
		for c := innermost; c != nil; c = c.outer {
			c.start()
		}
	})
}

// stop pauses the clock. Pauses can be nested: the clock runs again after as many
// starts.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses++; c.pauses == 1 {
		if c.timer != nil {
			c.timer.Stop()
		}
		c.spent += time.Since(c.since)
	}
}

// start continues the clock. A time limit that was reached just before the pause stays
// reached.
func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses--; c.pauses == 0 {
		c.since = time.Now()
		if c.timer != nil {
			c.timer.Reset(max(c.limit-c.spent, time.Millisecond))
		}
	}
}

// took returns the time that the clock has run, without pauses.
func (c *clock) took() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses > 0 {
		return c.spent
	}
	return c.spent + time.Since(c.since)
}
