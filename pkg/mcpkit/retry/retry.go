// Package retry retries operations that failed with a transient error. The
// host's retry stage, the declared tools' HTTP calls and mcpkit's middleware
// share it. The caller must know that an operation is safe to repeat.
//
// It does not use failsafe-go: its special rules (waits that are useless,
// errors that carry the time to wait, errors passed on unchanged) would remain,
// and that module requires gRPC.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Policy configures Do. The zero value means the defaults.
type Policy struct {
	// number of calls in all; 0: 3. With 1 there are no retries.
	Attempts int

	// the first wait; 0: 100 ms. It doubles after each attempt, with jitter.
	Base time.Duration

	// limit of one wait; 0: 5 s. After an error that asks for a longer wait, Do
	// gives up.
	MaxWait    time.Duration
	PerAttempt time.Duration // limit of one attempt; 0: none

	// Retryable, unless nil, replaces this package's Retryable: it reports
	// whether an error may be transient. An error marked with Permanent is
	// never retried.
	Retryable func(error) bool

	// Wait, unless nil, replaces Base: it returns the wait after an attempt,
	// counted from 1, and whether to try again. A wait above MaxWait means to
	// give up.
	Wait func(attempt int, err error) (wait time.Duration, again bool)

	// OnRetry, unless nil, is called before the wait for each retry, with the
	// number of the failed attempt.
	OnRetry func(attempt int, wait time.Duration, err error)

	// OnGiveUp, unless nil, turns the last attempt's error into the error that
	// Do returns.
	OnGiveUp func(attempts int, err error) error
}

// Validate returns an error that names the first negative field, nil if there is none.
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

// WithDefaults returns p with defaults instead of zero values.
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

// Do calls operation until it succeeds, fails with an error that is not
// retryable, or has been called p.Attempts times, and returns the last call's
// results. It gives up early if ctx has ended, or would end before the next
// attempt; if ctx ends during a wait, it returns ctx's error.
func Do[T any](ctx context.Context, p Policy, operation func(ctx context.Context) (T, error)) (T, error) {
	p = p.WithDefaults()
	for attempt := 1; ; attempt++ {
		res, err := runAttempt(ctx, p.PerAttempt, operation)
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
		wait, again := p.waitBefore(ctx, attempt, err)
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

// runAttempt calls operation once, with a context that ends after limit unless
// that is 0.
func runAttempt[T any](ctx context.Context, limit time.Duration, operation func(ctx context.Context) (T, error)) (T, error) {
	if limit <= 0 {
		return operation(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return operation(ctx)
}

// waitBefore returns the wait before the next attempt, after attempt failed
// with err. again is false to give up.
func (p Policy) waitBefore(ctx context.Context, attempt int, err error) (wait time.Duration, again bool) {
	if p.Wait != nil {
		if wait, again = p.Wait(attempt, err); !again {
			return 0, false
		}
	} else {
		wait = min(p.Base<<min(attempt-1, 20), p.MaxWait)
		wait = wait/2 + rand.N(wait/2+1)
		var coded *toolerr.Error
		if errors.As(err, &coded) {
			if ms, ok := coded.Extra()[After].(int64); ok {
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
