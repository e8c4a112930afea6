package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func ExampleDo() {
	attempts := 0
	text, err := retry.Do(context.Background(), retry.Policy{Base: time.Millisecond}, func(context.Context) (string, error) {
		if attempts++; attempts < 3 {
			return "", toolerr.New(toolerr.TransportError, "reset by peer")
		}
		return "at last", nil
	})
	fmt.Println(text, err, attempts)
	// Output: at last <nil> 3
}

// busy is an error that may pass.
func busy() error { return toolerr.New(toolerr.RateLimited, "busy") }

func TestWhoDecides(t *testing.T) {
	odd := errors.New("odd")
	for _, c := range []struct {
		name   string
		policy retry.Policy
		err    error
		want   int
	}{
		{"defaults", retry.Policy{}, busy(), 3},
		{"unknown", retry.Policy{}, odd, 1},
		{"classifier", retry.Policy{Attempts: 2, Retryable: func(err error) bool { return errors.Is(err, odd) }}, odd, 2},
		{"permanent, whatever the classifier says", retry.Policy{Retryable: func(error) bool { return true }}, fmt.Errorf("x: %w", retry.Permanent(busy())), 1},
		{"one attempt", retry.Policy{Attempts: 1}, busy(), 1},
		{"wait says no", retry.Policy{Attempts: 9, Wait: func(n int, _ error) (time.Duration, bool) { return 0, n < 4 }}, busy(), 4},
		{"wait is too long", retry.Policy{Wait: func(int, error) (time.Duration, bool) { return time.Hour, true }}, busy(), 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			made := 0
			res, err := retry.Do(t.Context(), c.policy, func(context.Context) (int, error) { made++; return made, c.err })
			require.Same(t, c.err, err, c.name)
			require.Equal(t, c.want, made, c.name)
			require.Equal(t, made, res, "what the last attempt gave")
		})
	}
}

func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		p := retry.Policy{
			Wait:    func(int, error) (time.Duration, bool) { return time.Second, true },
			OnRetry: func(n int, wait time.Duration, err error) { said = append(said, fmt.Sprint(n, wait, err)) },
			OnGiveUp: func(n int, err error) error {
				return fmt.Errorf("after %d attempts: %w", n, err)
			},
		}
		_, err := retry.Do(t.Context(), p, func(context.Context) (int, error) { return 0, busy() })
		require.EqualError(t, err, "after 3 attempts: busy")
		require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(err))
		require.Equal(t, []string{"1 1s busy", "2 1s busy"}, said)
	})
}

func TestAnAttemptHasItsOwnTimeAndTheWholeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		hang := func(ctx context.Context) (int, error) {
			made++
			<-ctx.Done()
			return 0, ctx.Err()
		}
		begin := time.Now()
		_, err := retry.Do(t.Context(), retry.Policy{PerAttempt: time.Second}, hang)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3, made)
		require.GreaterOrEqual(t, time.Since(begin), 3*time.Second)

		made = 0
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err = retry.Do(ctx, retry.Policy{PerAttempt: time.Second}, hang)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2, made)
	})
}

func TestPermanent(t *testing.T) {
	require.NoError(t, retry.Permanent(nil))
	require.False(t, retry.IsPermanent(busy()))
	err := retry.Permanent(busy())
	require.True(t, retry.IsPermanent(err))
	require.EqualError(t, err, "busy")
	require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(err))
}
