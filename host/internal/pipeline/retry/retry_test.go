package retry_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestStage(t *testing.T) {
	stagetest.Run(t, func(*testing.T) (call.Stage, func()) { return retry.New(retry.Config{}), func() {} })
}

func BenchmarkStage(b *testing.B) { stagetest.Bench(b, retry.New(retry.Config{})) }

func unreachable() error {
	return &call.ExecutionError{Tool: "t", Phase: call.PhaseConnect, Message: "no", Cause: toolerr.New(toolerr.ServerOffline, "down")}
}

// status is an HTTP server's refusal.
type status struct{ code int }

func (s *status) Error() string   { return "refused" }
func (s *status) Unwrap() error   { return toolerr.New(toolerr.TransportError, "refused") }
func (s *status) StatusCode() int { return s.code }

func TestWhatIsMadeAgain(t *testing.T) {
	own := errors.New("odd")
	for _, c := range []struct {
		name   string
		traits call.Traits
		err    error
		want   int
	}{
		{"unreachable", call.Traits{ReadOnly: true}, unreachable(), 3},
		{"unreachable, idempotent", call.Traits{Idempotent: true}, unreachable(), 3},
		{"unreachable, but it changes things", call.Traits{}, unreachable(), 1},
		{"transport", call.Traits{ReadOnly: true}, toolerr.New(toolerr.TransportError, "reset"), 3},
		{"503", call.Traits{ReadOnly: true}, &status{503}, 3},
		{"404", call.Traits{ReadOnly: true}, &status{404}, 1},
		{"408", call.Traits{ReadOnly: true}, &status{408}, 3},
		{"429", call.Traits{ReadOnly: true}, toolerr.New(toolerr.RateLimited, "later"), 3},
		{"timeout of the network", call.Traits{ReadOnly: true}, toolerr.New(toolerr.Timeout, "no answer"), 3},
		{"died during the call", call.Traits{ReadOnly: true}, &call.ExecutionError{Phase: call.PhaseExecute, Cause: toolerr.New(toolerr.ServerOffline, "died")}, 1},
		{"the breaker is open", call.Traits{ReadOnly: true}, toolerr.New(toolerr.ServerOffline, "failed 5 times"), 1},
		{"-32602", call.Traits{ReadOnly: true}, &call.MCPError{Code: -32602}, 1},
		{"-32603", call.Traits{ReadOnly: true}, &call.MCPError{Code: -32603}, 1},
		{"permanent", call.Traits{ReadOnly: true}, retry.Permanent(unreachable()), 1},
		{"unknown", call.Traits{ReadOnly: true}, own, 1},
		{"invalid", call.Traits{ReadOnly: true}, toolerr.New(toolerr.InvalidParams, "no"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := 0
				h := retry.New(retry.Config{})(func(context.Context, *call.Request) (*call.Result, error) {
					made++
					return nil, c.err
				})
				_, err := h(t.Context(), &call.Request{Tool: &call.Tool{Traits: c.traits}})
				require.Same(t, c.err, err)
				require.Equal(t, c.want, made)
			})
		})
	}
	require.NoError(t, retry.Permanent(nil))
	require.ErrorIs(t, retry.Permanent(own), own)
	require.EqualError(t, retry.Permanent(own), "odd")
}

func TestAResultThatSaysErrorIsAnAnswer(t *testing.T) {
	made := 0
	h := retry.New(retry.Config{})(func(context.Context, *call.Request) (*call.Result, error) {
		made++
		return &call.Result{Raw: []byte(`{"isError":true}`)}, nil
	})
	_, err := h(t.Context(), stagetest.Request("a", `{}`))
	require.NoError(t, err)
	require.Equal(t, 1, made)
}

func TestWaitsGrowAndJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		cfg := retry.Config{Attempts: 10, MaxWait: 2 * time.Second, OnRetry: func(_ *call.Request, attempt int, wait time.Duration, err error) {
			require.Equal(t, len(waits)+1, attempt)
			require.Error(t, err)
			waits = append(waits, wait)
		}}
		begin := time.Now()
		h := retry.New(cfg)(func(context.Context, *call.Request) (*call.Result, error) {
			if len(waits) == 9 {
				return stagetest.Text("at last"), nil
			}
			return nil, unreachable()
		})
		_, err := h(t.Context(), stagetest.Request("a", `{}`))
		require.NoError(t, err)
		var all time.Duration
		most := 100 * time.Millisecond
		for _, wait := range waits {
			require.LessOrEqual(t, wait, most)
			require.GreaterOrEqual(t, wait, most/2)
			all += wait
			most = min(2*most, 2*time.Second)
		}
		require.Equal(t, all, time.Since(begin))
	})
}

func TestTheErrorSaysWhenToTryAgain(t *testing.T) {
	for _, c := range []struct {
		ms   int64
		made int
	}{{3000, 2}, {60_000, 1}} {
		synctest.Test(t, func(t *testing.T) {
			made := 0
			begin := time.Now()
			h := retry.New(retry.Config{})(func(context.Context, *call.Request) (*call.Result, error) {
				if made++; made == 2 {
					return stagetest.Text("x"), nil
				}
				return nil, toolerr.New(toolerr.RateLimited, "later").With("retryAfterMs", c.ms)
			})
			_, err := h(t.Context(), stagetest.Request("a", `{}`))
			require.Equal(t, c.made, made)
			if c.made == 2 {
				require.NoError(t, err)
				require.Equal(t, 3*time.Second, time.Since(begin))
			} else {
				require.Zero(t, time.Since(begin), "longer than anybody waits")
			}
		})
	}
}

func TestNoWaitBeyondTheDeadlineOrACancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := retry.New(retry.Config{Base: time.Second})(func(context.Context, *call.Request) (*call.Result, error) {
			return nil, unreachable()
		})
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		_, err := h(ctx, stagetest.Request("a", `{}`))
		require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err), "what went wrong, not the deadline")
		require.Zero(t, time.Since(begin))

		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, stop)
		_, err = h(ctx, stagetest.Request("a", `{}`))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 300*time.Millisecond, time.Since(begin))
	})
}

func TestAnAttemptHasItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		h := retry.New(retry.Config{PerAttempt: time.Second})(func(ctx context.Context, _ *call.Request) (*call.Result, error) {
			if made++; made == 3 {
				return stagetest.Text("x"), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		_, err := h(t.Context(), stagetest.Request("a", `{}`))
		require.NoError(t, err)
		require.Equal(t, 3, made)

		made = -100
		_, err = h(t.Context(), stagetest.Request("a", `{}`))
		var timedOut *call.TimeoutError
		require.ErrorAs(t, err, &timedOut)
		require.Equal(t, time.Second, timedOut.After)
		require.Equal(t, -97, made)
	})
}

func TestWhatTheCallerHasSeenIsNotDoneTwice(t *testing.T) {
	for name, touch := range map[string]func(context.Context, *call.Request){
		"progress": func(_ context.Context, req *call.Request) { req.OnNotify("notifications/progress", nil) },
		"question": func(ctx context.Context, req *call.Request) { req.Ask(ctx, "elicitation/create", nil) }, //nolint:errcheck
	} {
		made := 0
		h := retry.New(retry.Config{})(func(ctx context.Context, req *call.Request) (*call.Result, error) {
			made++
			touch(ctx, req)
			return nil, unreachable()
		})
		req := stagetest.Request("a", `{}`)
		req.OnNotify = func(string, json.RawMessage) {}
		req.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil }
		_, err := h(t.Context(), req)
		require.Error(t, err)
		require.Equal(t, 1, made, name)
	}
}

func TestItsOwnClassifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		odd := errors.New("odd")
		h := retry.New(retry.Config{Retryable: func(err error) bool { return errors.Is(err, odd) }})(func(context.Context, *call.Request) (*call.Result, error) {
			made++
			return nil, odd
		})
		_, err := h(t.Context(), stagetest.Request("a", `{}`))
		require.Same(t, odd, err)
		require.Equal(t, 3, made)
	})
}

func TestConfig(t *testing.T) {
	require.NoError(t, retry.Config{}.Validate())
	for want, cfg := range map[string]retry.Config{
		"retry: attempts must not be negative, got -1":      {Attempts: -1},
		"retry: base must not be negative, got -1ns":        {Base: -1},
		"retry: max_wait must not be negative, got -1ns":    {MaxWait: -1},
		"retry: per_attempt must not be negative, got -1ns": {PerAttempt: -1},
	} {
		require.EqualError(t, cfg.Validate(), want)
	}
}

// A call that is made of another is not made again when that one was, in vain:
// else each name that a tool has beside its own would make three of every attempt.
func TestNamesOfAToolDoNotMultiplyAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := retry.New(retry.Config{})
		through := func(inner call.Handler, traits call.Traits) call.Handler {
			return func(ctx context.Context, req *call.Request) (*call.Result, error) {
				return inner(ctx, &call.Request{Tool: &call.Tool{Name: "own", Traits: traits}})
			}
		}
		made := 0
		fails := func(context.Context, *call.Request) (*call.Result, error) {
			made++
			return nil, unreachable()
		}
		reads := call.Traits{ReadOnly: true}
		for _, c := range []struct {
			name string
			h    call.Handler
			want int
		}{
			{"an alias", stage(through(stage(fails), reads)), 3},
			{"an alias of an alias", stage(through(stage(through(stage(fails), reads)), reads)), 3},
			{"an alias that says that it may be made again, of a tool that does not", stage(through(stage(fails), call.Traits{})), 3},
		} {
			made = 0
			_, err := c.h(t.Context(), &call.Request{Tool: &call.Tool{Name: "alias", Traits: reads}})
			require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err), c.name)
			require.Equal(t, c.want, made, c.name)
		}
		// What fails beside a call that was made again and worked is.
		made = 0
		first := true
		inner := stage(func(context.Context, *call.Request) (*call.Result, error) {
			if first = !first; !first {
				return nil, unreachable()
			}
			return stagetest.Text("done"), nil
		})
		_, err := stage(func(ctx context.Context, req *call.Request) (*call.Result, error) {
			made++
			if _, err := inner(ctx, req); err != nil {
				return nil, err
			}
			return nil, unreachable()
		})(t.Context(), &call.Request{Tool: &call.Tool{Name: "steps", Traits: reads}})
		require.Error(t, err)
		require.Equal(t, 3, made)
	})
}

func TestAnAttemptsTimeIsNotThatOfItsQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		h := retry.New(retry.Config{PerAttempt: time.Second})(func(ctx context.Context, req *call.Request) (*call.Result, error) {
			made++
			if _, err := req.Ask(ctx, "elicitation/create", nil); err != nil {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(500 * time.Millisecond):
				return stagetest.Text("x"), nil
			}
		})
		req := stagetest.Request("a", `{}`)
		req.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			time.Sleep(time.Hour)
			return json.RawMessage(`{}`), nil
		}
		_, err := h(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, 1, made)
	})
}
