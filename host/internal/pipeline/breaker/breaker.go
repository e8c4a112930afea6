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

// Config says when it opens. Zero values mean the defaults.
type Config struct {
	Off      bool
	Failures int           // in a row; 5
	Within   time.Duration // from the first of them to the last; 30 s
	Open     time.Duration // how long calls are refused; 5 s

	// Failure, unless nil, decides in place of Failure of this package.
	Failure func(error) bool
}

// Validate names the field that is wrong.
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
		c.Failure = Failure
	}
	return c
}

// A Breaker has one switch a server. It is safe for concurrent use.
type Breaker struct {
	cfg Config

	mu      sync.Mutex
	servers map[string]*state // those that have failed lately
}

type state struct {
	failures int // in a row
	first    time.Time
	at       time.Time // of the one that was counted last
	open     time.Time // until when; zero: closed
	trying   bool      // a call was let through to see
	last     error
}

// New returns a breaker that is closed for all servers.
func New(c Config) *Breaker {
	return &Breaker{cfg: c.withDefaults(), servers: map[string]*state{}}
}

// Stage lets calls through to servers that can be reached.
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

// enter reports whether the call is the one that decides, or why there can be
// no call.
func (b *Breaker) enter(server string) (trial bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.servers[server]
	if s == nil || s.open.IsZero() {
		return false, nil
	}
	left := time.Until(s.open)
	if left <= 0 && !s.trying {
		s.trying = true
		return true, nil
	}
	left = max(left, 100*time.Millisecond).Round(100 * time.Millisecond)
	return false, toolerr.New(toolerr.ServerOffline, "server %s failed %d times in a row, last error: %w; next try in %v",
		server, s.failures, s.last, left).With("retryAfterMs", left.Milliseconds())
}

// leave takes the end of a call into account. One that its caller gave up
// says nothing.
func (b *Breaker) leave(server string, began time.Time, trial bool, err error, givenUp bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.servers[server]
	failed := err != nil && b.cfg.Failure(err)
	if s == nil && !failed {
		return
	}
	if trial {
		s.trying = false
	}
	now := time.Now()
	switch {
	case givenUp && err != nil:
	case !failed:
		if trial || s.open.IsZero() { // not one that was under way when it opened
			delete(b.servers, server)
		}
	default:
		if s == nil || s.open.IsZero() && now.Sub(s.first) > b.cfg.Within {
			s = &state{first: now}
			b.servers[server] = s
		}
		s.last = err
		if !trial && began.Before(s.at) { // it has failed with that one
			return
		}
		s.failures, s.at = s.failures+1, now
		if trial || s.failures >= b.cfg.Failures && s.open.IsZero() {
			s.open = now.Add(b.cfg.Open)
		}
	}
}

// Failure reports whether an error is one of the way to a server.
func Failure(err error) bool {
	var answered *call.MCPError
	if errors.As(err, &answered) {
		return false
	}
	switch toolerr.CodeOf(err) {
	case toolerr.TransportError:
		var said interface{ StatusCode() int } // of HTTP: who refuses a request is there
		return !errors.As(err, &said) || said.StatusCode() >= 500
	case toolerr.ServerOffline:
		var failed *call.ExecutionError
		return errors.As(err, &failed) && failed.Phase == call.PhaseExecute
	}
	return false
}
