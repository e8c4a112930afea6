package mcpkit

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// An Observation is what is to be counted of one call.
type Observation struct {
	Tool  string
	Took  time.Duration
	Code  toolerr.Code // of a call that failed; else ""
	Bytes int          // of the result as it is sent
}

// Metrics tells observe of every call that has ended. observe is called by
// several goroutines.
func Metrics(observe func(ctx context.Context, o Observation)) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
			begin := time.Now()
			res := next(ctx, t, args)
			observe(ctx, Observation{Tool: t.Name(), Took: time.Since(begin), Code: res.Code, Bytes: len(res.JSON())})
			return res
		}
	}
}

// Logging writes a line of every call: the tool, how long it took, and how it
// failed. Arguments and results, which may be secret, are not written.
func Logging(to *slog.Logger) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
			begin := time.Now()
			res := next(ctx, t, args)
			said := []slog.Attr{slog.String("tool", t.Name()), slog.Duration("took", time.Since(begin))}
			level := slog.LevelInfo
			if res.IsError {
				level = slog.LevelWarn
				said = append(said, slog.String("code", string(res.Code)))
			}
			to.LogAttrs(ctx, level, "call", said...)
			return res
		}
	}
}

// RetryPolicy says which calls are made again. The zero value is good: three
// attempts in all, of tools that say that a second call does no harm, when the
// error says that it may pass.
type RetryPolicy struct {
	MaxRetries int           // after the first attempt; 0: 2. -1: none
	Base       time.Duration // the first wait; 0: 100 ms. Each further one is twice as long, with jitter
	MaxWait    time.Duration // of one wait; 0: 5 s

	// Retryable, the classifier, decides which errors may pass; nil:
	// retry.Retryable. An error marked with Permanent never may.
	Retryable func(error) bool

	// Wait, unless nil, says in place of Base how long to wait after an
	// attempt, the first being 1, or that there is to be no other.
	Wait func(attempt int, err error) (wait time.Duration, again bool)

	// OnRetry, unless nil, is told before each retry.
	OnRetry func(t *Tool, attempt int, wait time.Duration, err error)

	// OnGiveUp, unless nil, makes the error that the caller gets of the last
	// one.
	OnGiveUp func(t *Tool, attempts int, err error) error

	// Always makes calls again of tools, too, that do not say that they are
	// read-only or idempotent: a side effect may then happen twice.
	Always bool
}

// Retry makes calls again that failed for a reason that may pass.
func Retry(p RetryPolicy) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
			hints := t.Def().Hints
			if !p.Always && !hints.ReadOnly && !hints.Idempotent {
				return next(ctx, t, args)
			}
			res, err := retry.Do(ctx, p.of(t), func(ctx context.Context) (*CallResult, error) {
				res := next(ctx, t, args)
				return res, res.err()
			})
			if err != nil && (res == nil || res.err() != err) {
				return t.ErrorResult(err)
			}
			return res
		}
	}
}

// of is the policy for one call of a tool.
func (p RetryPolicy) of(t *Tool) retry.Policy {
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

// err is the cause of a result that is an error.
func (r *CallResult) err() error {
	if !r.IsError {
		return nil
	}
	if r.Err == nil {
		r.Err = toolerr.New(r.Code, "%s", r.Text)
	}
	return r.Err
}

// Permanent marks an error that a tool's function returns: whatever else it
// says, Retry does not try again.
func Permanent(err error) error { return retry.Permanent(err) }
