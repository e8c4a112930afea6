// Package breaker is the stage that stops sending calls to a server that
// cannot be reached: after 5 failures in a row within half a minute, calls are
// refused at once for 5 s; then one is let through, and its end decides.
//
// A failure is one of the way, not of the server's work: the connection broke,
// or the server died during the call. Answers, errors among them, are none.
// Nor are time limits (a caller that asks for long things would shut the
// server to all others; a server that hangs is noticed by its connection), nor
// failures to start it (the connection has its own pace for those). Calls that
// were under way together and fail together are one failure.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config holds the thresholds. Zero values mean the defaults.
type Config struct {
	Off      bool
	Failures int           // successive failures; 5
	Within   time.Duration // longest time from the first to the last failure; 30 s
	Open     time.Duration // time for which calls are refused; 5 s

	// Failure, unless nil, replaces this package's Failure.
	Failure func(error) bool
}

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	switch {
	case c.Failures < 0:
		return fmt.Errorf("breaker: failures must not be negative, got %d", c.Failures)
	case c.Within < 0:
		return fmt.Errorf("breaker: within must not be negative, got %v", c.Within)
	case c.Open < 0:
		return fmt.Errorf("breaker: open must not be negative, got %v", c.Open)
	}
	return nil
}

// withDefaults returns the settings with 5 failures within 30 s and 5 s open, unless
// they are set.
func (c Config) withDefaults() Config {
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.Within == 0 {
		c.Within = 30 * time.Second
	}
	if c.Open == 0 {
		c.Open = 5 * time.Second
	}
	if c.Failure == nil {
		c.Failure = CountsAsFailure
	}
	return c
}

// A Breaker has one circuit breaker for each server. It is safe for concurrent use.
type Breaker struct {
	cfg Config

	mu      sync.Mutex
	servers map[string]*serverState // servers with recent failures
}

// serverState is the state of a server's circuit breaker.
type serverState struct {
	failures  int // successive
	first     time.Time
	at        time.Time // time of the last failure
	openUntil time.Time // calls are refused until then; zero: closed
	hasTrial  bool      // a trial call is running
	last      error
}

// New returns a breaker that is closed for all servers.
func New(c Config) *Breaker {
	return &Breaker{cfg: c.withDefaults(), servers: map[string]*serverState{}}
}

// Stage returns a handler that refuses calls to servers that cannot be reached.
func (b *Breaker) Stage(next call.Handler) call.Handler {
	if b.cfg.Off {
		return next
	}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		trial, err := b.enter(req.Tool.Server)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		res, err := next(ctx, req)
		b.leave(req.Tool.Server, began, trial, err, ctx.Err() != nil)
		return res, err
	}
}

// enter returns an error if the server's circuit breaker is open. trial is true if this
// call is the one that closes or reopens it; then leave must get true.
func (b *Breaker) enter(server string) (trial bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.servers[server]
	if s == nil || s.openUntil.IsZero() {
		return false, nil
	}
	left := time.Until(s.openUntil)
	if left <= 0 && !s.hasTrial {
		s.hasTrial = true
		return true, nil
	}
	left = max(left, 100*time.Millisecond).Round(100 * time.Millisecond)
	return false, toolerr.New(toolerr.ServerOffline, "server %s failed %d times in a row, last error: %w; next try in %v",
		server, s.failures, s.last, left).With("retryAfterMs", left.Milliseconds())
}

// leave counts the end of a call that began at a time. A call that its caller cancelled
// (givenUp) does not count.
func (b *Breaker) leave(server string, began time.Time, trial bool, err error, givenUp bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.servers[server]
	failed := err != nil && b.cfg.Failure(err)
	if s == nil && !failed {
		return
	}
	if trial {
		s.hasTrial = false
	}
	now := time.Now()
	switch {
	case givenUp && err != nil:
	case !failed:
		if trial || s.openUntil.IsZero() { // not a call that began before the breaker opened
			delete(b.servers, server)
		}
	default:
		if s == nil || s.openUntil.IsZero() && now.Sub(s.first) > b.cfg.Within {
			s = &serverState{first: now}
			b.servers[server] = s
		}
		s.last = err
		if !trial && began.Before(s.at) { // it belongs to the failure that was counted last
			return
		}
		s.failures, s.at = s.failures+1, now
		if trial || s.failures >= b.cfg.Failures && s.openUntil.IsZero() {
			s.openUntil = now.Add(b.cfg.Open)
		}
	}
}

// CountsAsFailure reports whether an error means that the server could not be reached.
func CountsAsFailure(err error) bool {
	var answered *call.MCPError
	if errors.As(err, &answered) {
		return false
	}
	switch toolerr.CodeOf(err) {
	case toolerr.TransportError:
		var said interface{ StatusCode() int } // of HTTP: a server that refuses a request can be reached
		return !errors.As(err, &said) || said.StatusCode() >= 500
	case toolerr.ServerOffline:
		var failed *call.ExecutionError
		return errors.As(err, &failed) && failed.Phase == call.PhaseExecute
	}
	return false
}
