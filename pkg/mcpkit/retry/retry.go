// Package retry does something again that failed for a reason that may pass:
// what the host's stage, the declared tools' HTTP calls and the middleware of
// tools have in common. Whether a second try does any harm is for the caller to
// know; Do is for what may be repeated.
//
// It is own code rather than failsafe-go: what is particular (when the wait is
// useless, what the error itself says of when to come again, errors passed as
// they are) would remain, and that module requires gRPC.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Policy says how often and how long. Zero values mean the defaults.
type Policy struct {
	Attempts   int           // in all; 3. 1: nothing is done again
	Base       time.Duration // the first wait; 100 ms. Each further one is twice as long, with jitter
	MaxWait    time.Duration // of one wait; 5 s. An error that asks for more is not retried
	PerAttempt time.Duration // how long one attempt may take; 0: as long as the whole

	// Retryable, unless nil, decides in place of Retryable of this package
	// which errors may pass. An error marked with Permanent is never retried.
	Retryable func(error) bool

	// Wait, unless nil, says in place of Base how long to wait after an
	// attempt, the first being 1, or that there is to be no other.
	Wait func(attempt int, err error) (wait time.Duration, again bool)

	// OnRetry, unless nil, is told before each further attempt.
	OnRetry func(attempt int, wait time.Duration, err error)

	// OnGiveUp, unless nil, makes the error that Do returns of the last one.
	OnGiveUp func(attempts int, err error) error
}

// Validate names the field that is wrong.
func (p Policy) Validate() error {
	switch {
	case p.Attempts < 0:
		return fmt.Errorf("retry: attempts must not be negative, got %d", p.Attempts)
	case p.Base < 0:
		return fmt.Errorf("retry: base must not be negative, got %v", p.Base)
	case p.MaxWait < 0:
		return fmt.Errorf("retry: max_wait must not be negative, got %v", p.MaxWait)
	case p.PerAttempt < 0:
		return fmt.Errorf("retry: per_attempt must not be negative, got %v", p.PerAttempt)
	}
	return nil
}

// WithDefaults returns p with the defaults filled in.
func (p Policy) WithDefaults() Policy {
	if p.Attempts == 0 {
		p.Attempts = 3
	}
	if p.Base == 0 {
		p.Base = 100 * time.Millisecond
	}
	if p.MaxWait == 0 {
		p.MaxWait = 5 * time.Second
	}
	if p.Retryable == nil {
		p.Retryable = Retryable
	}
	return p
}

// Do calls once until it succeeds, fails for good, or has been called
// p.Attempts times, and returns what the last call did. It gives up early when
// ctx ends, or would before the next attempt.
func Do[T any](ctx context.Context, p Policy, once func(ctx context.Context) (T, error)) (T, error) {
	p = p.WithDefaults()
	for attempt := 1; ; attempt++ {
		res, err := one(ctx, p.PerAttempt, once)
		if err == nil {
			return res, nil
		}
		giveUp := func() (T, error) {
			if p.OnGiveUp != nil {
				err = p.OnGiveUp(attempt, err)
			}
			return res, err
		}
		if attempt >= p.Attempts || ctx.Err() != nil || IsPermanent(err) || !p.Retryable(err) {
			return giveUp()
		}
		wait, again := p.wait(ctx, attempt, err)
		if !again {
			return giveUp()
		}
		if p.OnRetry != nil {
			p.OnRetry(attempt, wait, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			err = ctx.Err()
			return giveUp()
		}
	}
}

func one[T any](ctx context.Context, limit time.Duration, once func(ctx context.Context) (T, error)) (T, error) {
	if limit <= 0 {
		return once(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return once(ctx)
}

// wait returns how long to wait after an attempt, or that it is no use.
func (p Policy) wait(ctx context.Context, attempt int, err error) (time.Duration, bool) {
	var wait time.Duration
	if p.Wait != nil {
		var again bool
		if wait, again = p.Wait(attempt, err); !again {
			return 0, false
		}
	} else {
		wait = min(p.Base<<min(attempt-1, 20), p.MaxWait)
		wait = wait/2 + rand.N(wait/2+1)
		var said *toolerr.Error
		if errors.As(err, &said) {
			if ms, ok := said.Extra()[After].(int64); ok {
				wait = max(wait, time.Duration(ms)*time.Millisecond)
			}
		}
	}
	if wait > p.MaxWait {
		return 0, false
	}
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= wait {
		return 0, false
	}
	return wait, true
}

// After is the extra value of a toolerr.Error that says when to come again, in
// milliseconds, an int64.
const After = "retryAfterMs"

// ParseAfter reads the header Retry-After (RFC 9110, section 10.2.3): seconds, a day
// at most, or a date.
func ParseAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 24*60*60)) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

// Retryable reports whether an error says that something failed on its way:
// TRANSPORT_ERROR, RATE_LIMITED, TIMEOUT and SERVER_OFFLINE, unless an HTTP
// status says that the request itself is wrong.
func Retryable(err error) bool {
	switch toolerr.CodeOf(err) {
	case toolerr.TransportError, toolerr.RateLimited, toolerr.Timeout, toolerr.ServerOffline:
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

// Permanent marks an error: whatever else it says, there is no use in trying
// again. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err is, or wraps, one that was marked.
func IsPermanent(err error) bool { return errors.As(err, new(*permanentError)) }
