package timeout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/timeout"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestStage(t *testing.T) {
	stagetest.Run(t, func(*testing.T) (call.Stage, func()) { return timeout.New(timeout.Config{}), func() {} })
}

func BenchmarkStage(b *testing.B) { stagetest.Bench(b, timeout.New(timeout.Config{})) }

func TestTheEarliestDeadlineCounts(t *testing.T) {
	const s = time.Second
	cfg := timeout.Config{
		Servers: map[string]time.Duration{"slow": 100 * s, "quick": 2 * s, "patient": -1},
		Tools:   map[string]time.Duration{"slow__t": 60 * s, "quick__t": 10 * s, "patient__t": 7 * s, "plain__ever": -1},
	}
	for _, c := range []struct {
		server, tool string
		traits       call.Traits
		caller       time.Duration
		want         time.Duration // 0: the caller waits for an hour
		callers      bool          // the deadline is the caller's own
	}{
		{server: "plain", tool: "plain__t", want: 30 * s},
		{server: "plain", tool: "plain__ever"},
		{server: "slow", tool: "slow__other", want: 100 * s},
		{server: "slow", tool: "slow__t", want: 60 * s},
		{server: "quick", tool: "quick__t", want: 2 * s},
		{server: "patient", tool: "patient__other"},
		{server: "patient", tool: "patient__t", want: 7 * s},
		{server: "slow", tool: "slow__t", caller: 3 * s, want: 3 * s, callers: true},
		{server: "slow", tool: "slow__t", caller: 61 * s, want: 60 * s},
		{server: "ours", tool: "ls", traits: call.Traits{OwnsDeadline: true}},
		{server: "ours", tool: "grep", traits: call.Traits{Timeout: 20 * s}, want: 25 * s},
		{server: "ours", tool: "bash", traits: call.Traits{Timeout: 615 * s}, want: 620 * s},
		{server: "quick", tool: "x", traits: call.Traits{OwnsDeadline: true}, want: 2 * s},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if c.caller > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.caller)
				defer cancel()
			}
			h := timeout.New(cfg)(func(ctx context.Context, _ *call.Request) (*call.Result, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(time.Hour):
					return stagetest.Text("late"), nil
				}
			})
			begin := time.Now()
			_, err := h(ctx, &call.Request{Tool: &call.Tool{Name: c.tool, Server: c.server, Traits: c.traits}})
			if c.want == 0 {
				require.NoError(t, err, "%+v", c)
				return
			}
			require.Equal(t, c.want, time.Since(begin), "%+v", c)
			require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var timedOut *call.TimeoutError
			require.Equal(t, !c.callers, errors.As(err, &timedOut))
			if !c.callers {
				require.Equal(t, call.TimeoutError{Tool: c.tool, After: c.want}, *timedOut)
			}
		})
	}
}

func TestWhatCameAfterAllIsKept(t *testing.T) {
	own := errors.New("its own failure")
	for _, c := range []struct {
		res *call.Result
		err error
	}{{stagetest.Text("just in time"), nil}, {nil, own}} {
		synctest.Test(t, func(t *testing.T) {
			h := timeout.New(timeout.Config{})(func(ctx context.Context, _ *call.Request) (*call.Result, error) {
				<-ctx.Done()
				return c.res, c.err
			})
			res, err := h(t.Context(), stagetest.Request("a", `{}`))
			require.Same(t, c.res, res)
			require.Equal(t, c.err, err)
		})
	}
}

func TestConfig(t *testing.T) {
	require.NoError(t, timeout.Config{}.Validate())
	require.EqualError(t, timeout.Config{Grace: -1}.Validate(), "timeout: grace must not be negative, got -1ns")
}
