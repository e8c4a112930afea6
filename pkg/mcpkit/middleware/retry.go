package middleware

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// RetryPolicy configures Retry. The zero value retries twice, only tools that
// are read-only or idempotent, and only errors that retry.Retryable accepts.
type RetryPolicy struct {
	MaxRetries int // calls after the first attempt; 0: 2, -1: none

	// the first wait; 0: 100 ms. It doubles after each attempt, with jitter.
	Base    time.Duration
	MaxWait time.Duration // limit of one wait; 0: 5 s

	// Retryable reports whether an error may be transient; nil:
	// retry.Retryable. An error marked with Permanent is never retried.
	Retryable func(error) bool

	// Wait, unless nil, replaces Base: it returns the wait after an attempt,
	// counted from 1, and whether to try again.
	Wait func(attempt int, err error) (wait time.Duration, again bool)

	// OnRetry, unless nil, is called before the wait for each retry, with the
	// number of the failed attempt.
	OnRetry func(t *mcpkit.Tool, attempt int, wait time.Duration, err error)

	// OnGiveUp, unless nil, turns the last attempt's error into the error of
	// the result.
	OnGiveUp func(t *mcpkit.Tool, attempts int, err error) error

	// Always also retries tools that are neither read-only nor idempotent: a
	// side effect may then happen twice.
	Always bool
}

// Retry retries calls that failed with a transient error.
func Retry(p RetryPolicy) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, t *mcpkit.Tool, args json.RawMessage) *mcpkit.CallResult {
			hints := t.Def().Hints
			if !p.Always && !hints.ReadOnly && !hints.Idempotent {
				return next(ctx, t, args)
			}
			res, err := retry.Do(ctx, p.forTool(t), func(ctx context.Context) (*mcpkit.CallResult, error) {
				res := next(ctx, t, args)
				return res, causeOf(res)
			})
			if err != nil && (res == nil || causeOf(res) != err) {
				return t.ErrorResult(err)
			}
			return res
		}
	}
}

// forTool returns the policy for one call of t.
func (p RetryPolicy) forTool(t *mcpkit.Tool) retry.Policy {
	r := retry.Policy{Attempts: p.MaxRetries + 1, Base: p.Base, MaxWait: p.MaxWait, Retryable: p.Retryable, Wait: p.Wait}
	switch {
	case p.MaxRetries == 0:
		r.Attempts = 0
	case p.MaxRetries < 0:
		r.Attempts = 1
	}
	if p.OnRetry != nil {
		r.OnRetry = func(attempt int, wait time.Duration, err error) { p.OnRetry(t, attempt, wait, err) }
	}
	if p.OnGiveUp != nil {
		r.OnGiveUp = func(attempts int, err error) error { return p.OnGiveUp(t, attempts, err) }
	}
	return r
}

// causeOf returns the cause of an error result, or nil for any other result. It
// sets a missing cause.
func causeOf(r *mcpkit.CallResult) error {
	if !r.IsError {
		return nil
	}
	if r.Err == nil {
		r.Err = toolerr.New(r.Code, "%s", r.Text)
	}
	return r.Err
}

// Permanent marks an error that a tool's function returns: Retry does not retry
// it, whatever its code.
func Permanent(err error) error { return retry.Permanent(err) }
