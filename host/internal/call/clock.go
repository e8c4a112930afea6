package call

import (
	"context"
	"sync"
	"time"
)

type clockKey struct{}

// clock measures the time that one call takes, without pauses, and limits it if it has a
// timer. The clocks of nested calls form a list in the context, so that a step of a chain
// that waits for its user does not use up the time of the chain.
type clock struct {
	outer *clock // of the call that this one is made in; nil: none
	limit time.Duration
	timer *time.Timer // nil: no limit

	mu     sync.Mutex
	spent  time.Duration // until since
	since  time.Time     // when it was started last
	pauses int           // not yet resumed
}

// WithTimeout limits how long a call may take. It returns a context that is
// cancelled with late as its cause after d, not counting pauses: the time in
// which a person is asked something is no call's time. The context has no
// deadline, since it is not known; see Left. Call cancel when the call has ended.
func WithTimeout(ctx context.Context, d time.Duration, late error) (timed context.Context, cancel context.CancelFunc) {
	timed, end := context.WithCancelCause(ctx)
	timed, c := withClock(timed)
	c.limit, c.timer = d, time.AfterFunc(d, func() { end(late) })
	return timed, func() {
		c.timer.Stop()
		end(nil)
	}
}

// Measure returns a context for one call, and a function that returns how long the call
// has taken so far, not counting pauses.
func Measure(ctx context.Context) (measured context.Context, took func() time.Duration) {
	measured, c := withClock(ctx)
	return measured, c.took
}

func withClock(ctx context.Context) (context.Context, *clock) {
	outer, _ := ctx.Value(clockKey{}).(*clock)
	c := &clock{outer: outer, since: time.Now()}
	return context.WithValue(ctx, clockKey{}, c), c
}

// Left returns the time until ctx ends: the least of its deadline and of the limits set by
// WithTimeout, provided that no pause follows. It is false if there is neither. The time is
// not negative.
func Left(ctx context.Context) (least time.Duration, limited bool) {
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

// Pause stops the clocks of the call that ctx belongs to and of the calls that
// it is made in, until resume is called. Several pauses may overlap.
func Pause(ctx context.Context) (resume func()) {
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

// start continues the clock. A call whose time ended just before the pause has
// ended.
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

// took returns how long the clock has run, without pauses.
func (c *clock) took() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses > 0 {
		return c.spent
	}
	return c.spent + time.Since(c.since)
}
