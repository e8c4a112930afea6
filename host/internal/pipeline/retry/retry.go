// Package retry is the stage that repeats calls that failed on their way: the server could not
// be reached, was too busy, or did not answer in time. It repeats only calls of tools for
// which a second call does no harm (readOnlyHint, idempotentHint), up to three attempts,
// after 100 ms, 200 ms and so on with jitter, or after the time that the error names.
//
// It never repeats: a call that the server answered, with a result with isError or a JSON-RPC
// error; a call during which the server died, since the call may be the cause; a call that
// the caller cancelled, or whose deadline would pass during the wait; a call that has sent
// progress or asked the client, which would see it twice; a call one of whose nested calls was
// repeated already and failed; and errors marked with Permanent.
//
// Package mcpkit/retry computes the pauses, also for the tools' middleware.
package retry

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config holds the attempts and pauses. Zero values mean the defaults.
type Config struct {
	Attempts   int           // total; 3. 1: no retries
	Base       time.Duration // first pause; 100 ms
	MaxWait    time.Duration // longest pause; 5 s. An error that demands a longer one is not retried
	PerAttempt time.Duration // time limit of an attempt; 0: that of the call

	// Retryable, unless nil, replaces this package's Retryable.
	Retryable func(error) bool

	// OnRetry is called before a call is repeated. It may be nil.
	OnRetry func(req *call.Request, attempt int, wait time.Duration, err error)
}

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	return retry.Policy{Attempts: c.Attempts, Base: c.Base, MaxWait: c.MaxWait, PerAttempt: c.PerAttempt}.Validate()
}

// New returns the stage, which repeats failed calls of tools that may be repeated. Without
// Retryable it decides by the function Retryable.
func New(c Config) call.Stage {
	if c.Retryable == nil {
		c.Retryable = Retryable
	}
	return func(next call.Handler) call.Handler {
		return func(ctx context.Context, req *call.Request) (*call.Result, error) {
			if c.Attempts == 1 || !req.Tool.IsRepeatable() {
				return next(ctx, req)
			}
			return c.run(ctx, req, next)
		}
	}
}

// run makes a call, repeatedly if it fails with a retryable error before anything of
// its answer was passed on. Only the innermost of nested calls is repeated.
func (c Config) run(ctx context.Context, req *call.Request, next call.Handler) (*call.Result, error) {
	watched, touched := watchPassedOn(req)
	within := new(atomic.Bool)
	policy := retry.Policy{Attempts: c.Attempts, Base: c.Base, MaxWait: c.MaxWait,
		Retryable: func(err error) bool { return !touched.Load() && !within.Load() && c.Retryable(err) },
		OnGiveUp: func(attempts int, err error) error {
			if outer, ok := ctx.Value(retriedKey{}).(*atomic.Bool); ok && (attempts > 1 || within.Load()) {
				outer.Store(true)
			}
			return err
		},
	}
	if c.OnRetry != nil {
		policy.OnRetry = func(attempt int, wait time.Duration, err error) { c.OnRetry(req, attempt, wait, err) }
	}
	return retry.Do(context.WithValue(ctx, retriedKey{}, within), policy, func(ctx context.Context) (*call.Result, error) { return c.attempt(ctx, watched, next) })
}

// retriedKey is the context key of a mark that is set when a nested call was retried
// without success. Otherwise each alias of a tool would multiply the attempts by
// three.
type retriedKey struct{}

// attempt makes the call once, within PerAttempt if that is set; after that time it returns
// a *call.TimeoutError.
func (c Config) attempt(ctx context.Context, req *call.Request, next call.Handler) (*call.Result, error) {
	if c.PerAttempt == 0 {
		return next(ctx, req)
	}
	late := &call.TimeoutError{Tool: req.Tool.Name, After: c.PerAttempt}
	timed, cancel := call.WithTimeout(ctx, c.PerAttempt, late)
	defer cancel()
	if ask := req.Ask; ask != nil { // the time for the user's answer does not count
		asking := *req
		asking.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			defer call.PauseClocks(timed)()
			return ask(ctx, method, params)
		}
		req = &asking
	}
	res, err := next(timed, req)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) && context.Cause(timed) == late {
		return nil, late
	}
	return res, err
}

// watchPassedOn returns a copy of the request, and a flag that becomes true when the
// caller gets a notification or question of the call.
func watchPassedOn(req *call.Request) (*call.Request, *atomic.Bool) {
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

// Retryable reports whether an error means that the call did not reach the server or
// got no answer.
func Retryable(err error) bool {
	if errors.As(err, new(*call.MCPError)) {
		return false
	}
	if toolerr.CodeOf(err) == toolerr.ServerOffline {
		var failed *call.ExecutionError
		return errors.As(err, &failed) && failed.Phase == call.PhaseConnect
	}
	return retry.Retryable(err)
}

// Permanent wraps an error so that Retryable is false for it.
func Permanent(err error) error { return retry.Permanent(err) }
