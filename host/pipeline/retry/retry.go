// Package retry is the stage that makes a call again that failed on its way:
// the server could not be reached, it was too busy, or it did not answer in
// time. It does so only for tools that say that a second call does no harm
// (readOnlyHint, idempotentHint), three times in all, waiting 100 ms, 200 ms …
// with jitter between, or as long as the error says.
//
// Never made again: what a server answered, be it a result with isError or a
// JSON-RPC error; a call during which the server died, since the call may be
// what killed it; one that the caller cancelled, or whose deadline the wait
// would reach; one that has sent progress or asked the client, which would
// see it all twice; and errors marked with Permanent.
//
// It is own code rather than failsafe-go: what is particular (who may be asked
// again, when the wait is useless, errors passed as they are) would remain,
// and that module requires gRPC.
package retry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config says how often and how long. Zero values mean the defaults.
type Config struct {
	Attempts   int           // in all; 3. 1: no call is made again
	Base       time.Duration // the first wait; 100 ms
	MaxWait    time.Duration // of one wait; 5 s. An error that asks for more is not retried
	PerAttempt time.Duration // how long one attempt may take; 0: as long as the call

	// Retryable, unless nil, decides in place of Retryable of this package.
	Retryable func(error) bool

	// OnRetry, unless nil, is told before a call is made again.
	OnRetry func(req *call.Request, attempt int, wait time.Duration, err error)
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Attempts < 0:
		return fmt.Errorf("retry: attempts is %d, less than nothing", c.Attempts)
	case c.Base < 0:
		return fmt.Errorf("retry: base is %v, less than nothing", c.Base)
	case c.MaxWait < 0:
		return fmt.Errorf("retry: max_wait is %v, less than nothing", c.MaxWait)
	case c.PerAttempt < 0:
		return fmt.Errorf("retry: per_attempt is %v, less than nothing", c.PerAttempt)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Attempts == 0 {
		c.Attempts = 3
	}
	if c.Base == 0 {
		c.Base = 100 * time.Millisecond
	}
	if c.MaxWait == 0 {
		c.MaxWait = 5 * time.Second
	}
	if c.Retryable == nil {
		c.Retryable = Retryable
	}
	return c
}

// New returns the stage.
func New(c Config) call.Stage {
	c = c.withDefaults()
	return func(next call.Handler) call.Handler {
		return func(ctx context.Context, req *call.Request) (*call.Result, error) {
			if c.Attempts == 1 || !req.Tool.Repeatable() {
				return next(ctx, req)
			}
			return c.run(ctx, req, next)
		}
	}
}

func (c Config) run(ctx context.Context, req *call.Request, next call.Handler) (*call.Result, error) {
	watched, touched := watch(req)
	for attempt := 1; ; attempt++ {
		res, err := c.attempt(ctx, watched, next)
		if err == nil || attempt == c.Attempts || ctx.Err() != nil || touched.Load() || !c.Retryable(err) {
			return res, err
		}
		wait, ok := c.wait(ctx, attempt, err)
		if !ok {
			return nil, err
		}
		if c.OnRetry != nil {
			c.OnRetry(req, attempt, wait, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// attempt makes the call once, within its own time if there is one.
func (c Config) attempt(ctx context.Context, req *call.Request, next call.Handler) (*call.Result, error) {
	if c.PerAttempt == 0 {
		return next(ctx, req)
	}
	timed, cancel := context.WithTimeout(ctx, c.PerAttempt)
	defer cancel()
	res, err := next(timed, req)
	if err != nil && timed.Err() != nil && ctx.Err() == nil && errors.Is(err, timed.Err()) {
		return nil, &call.TimeoutError{Tool: req.Tool.Name, After: c.PerAttempt}
	}
	return res, err
}

// wait returns how long to wait after an attempt, or that it is no use.
func (c Config) wait(ctx context.Context, attempt int, err error) (time.Duration, bool) {
	wait := min(c.Base<<min(attempt-1, 20), c.MaxWait)
	wait = wait/2 + rand.N(wait/2+1)
	var said *toolerr.Error
	if errors.As(err, &said) {
		if ms, ok := said.Extra()["retryAfterMs"].(int64); ok {
			wait = max(wait, time.Duration(ms)*time.Millisecond)
		}
	}
	if wait > c.MaxWait {
		return 0, false
	}
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= wait {
		return 0, false
	}
	return wait, true
}

// watch returns the request with a mark that is set when the caller has heard
// of the call.
func watch(req *call.Request) (*call.Request, *atomic.Bool) {
	touched := new(atomic.Bool)
	if req.OnNotify == nil && req.Ask == nil {
		return req, touched
	}
	watched := *req
	if req.OnNotify != nil {
		watched.OnNotify = func(method string, params json.RawMessage) {
			touched.Store(true)
			req.OnNotify(method, params)
		}
	}
	if req.Ask != nil {
		watched.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			touched.Store(true)
			return req.Ask(ctx, method, params)
		}
	}
	return &watched, touched
}

// Retryable reports whether an error says that the call failed on its way.
func Retryable(err error) bool {
	var permanent *permanentError
	var answered *call.MCPError
	if errors.As(err, &permanent) || errors.As(err, &answered) {
		return false
	}
	switch toolerr.CodeOf(err) {
	case toolerr.ServerOffline:
		var failed *call.ExecutionError
		return errors.As(err, &failed) && failed.Phase == call.PhaseConnect
	case toolerr.TransportError, toolerr.RateLimited, toolerr.Timeout:
		return !refused(err)
	}
	return false
}

// refused reports whether an HTTP server said that the request is wrong: a
// status of 400 and more, but for those that mean later.
func refused(err error) bool {
	var said interface{ StatusCode() int }
	if !errors.As(err, &said) {
		return false
	}
	status := said.StatusCode()
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent marks an error: the call is not made again, whatever else the
// error says.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}
