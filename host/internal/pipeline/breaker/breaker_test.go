package breaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/breaker"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestStage(t *testing.T) {
	stagetest.Run(t, func(*testing.T) (call.Stage, func()) { return breaker.New(breaker.Config{}).Stage, func() {} })
}

func BenchmarkStage(b *testing.B) { stagetest.Bench(b, breaker.New(breaker.Config{}).Stage) }

// line is a server that answers or fails as told.
type line struct {
	h    call.Handler
	err  error
	sent int
}

func newLine(cfg breaker.Config) *line {
	l := &line{}
	l.h = breaker.New(cfg).Stage(func(context.Context, *call.Request) (*call.Result, error) {
		l.sent++
		if l.err != nil {
			return nil, l.err
		}
		return stagetest.Text("x"), nil
	})
	return l
}

func (l *line) call(t *testing.T, server string) error {
	_, err := l.h(t.Context(), &call.Request{Tool: &call.Tool{Name: "t", Server: server}})
	return err
}

func TestItOpensAfterFailuresInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := toolerr.New(toolerr.TransportError, "connection reset")
		l := newLine(breaker.Config{})
		for range 3 {
			l.err = broken
			for range 4 {
				require.ErrorIs(t, l.call(t, "s"), broken)
			}
			l.err = nil
			require.NoError(t, l.call(t, "s"), "an answer begins the count anew")
		}
		l.err = broken
		for range 5 {
			require.ErrorIs(t, l.call(t, "s"), broken)
		}
		sent := l.sent
		time.Sleep(time.Second)
		err := l.call(t, "s")
		require.Equal(t, sent, l.sent, "refused at once")
		require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
		require.ErrorIs(t, err, broken)
		require.EqualError(t, err, "server s failed 5 times in a row, last error: connection reset; next try in 4s")

		l.err = nil
		require.NoError(t, l.call(t, "other"), "another server is not concerned")
		require.Error(t, l.call(t, "s"))

		// After its time one call decides: it fails, it is open again.
		time.Sleep(4 * time.Second)
		l.err = broken
		sent = l.sent
		require.ErrorIs(t, l.call(t, "s"), broken)
		require.ErrorContains(t, l.call(t, "s"), "failed 6 times")
		require.Equal(t, sent+1, l.sent)

		// It works, and the count begins anew.
		time.Sleep(5 * time.Second)
		l.err = nil
		require.NoError(t, l.call(t, "s"))
		l.err = broken
		for range 4 {
			require.ErrorIs(t, l.call(t, "s"), broken)
		}
		l.err = nil
		require.NoError(t, l.call(t, "s"))
	})
}

func TestOneCallAtATimeIsLetThroughToSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Config{Failures: 1})
		sent := 0
		h := b.Stage(func(ctx context.Context, req *call.Request) (*call.Result, error) {
			sent++
			if string(req.Params) == "fail" {
				return nil, toolerr.New(toolerr.TransportError, "reset")
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		tool := &call.Tool{Name: "t", Server: "s"}
		h(t.Context(), &call.Request{Tool: tool, Params: []byte("fail")}) //nolint:errcheck // it opens
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		go h(ctx, &call.Request{Tool: tool}) //nolint:errcheck // it waits
		synctest.Wait()
		require.Equal(t, 2, sent)
		_, err := h(t.Context(), &call.Request{Tool: tool})
		require.ErrorContains(t, err, "next try")
		require.Equal(t, 2, sent)
		cancel() // it says nothing; the next one may try
		synctest.Wait()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = h(ctx, &call.Request{Tool: tool})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3, sent)
	})
}

func TestOldFailuresAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(breaker.Config{})
		l.err = toolerr.New(toolerr.TransportError, "reset")
		for n := range 20 {
			l.call(t, "s") //nolint:errcheck // it fails
			require.Equal(t, n+1, l.sent)
			time.Sleep(11 * time.Second)
		}
	})
}

// status is an HTTP server's refusal.
type status struct{ code int }

func (s *status) Error() string   { return "refused" }
func (s *status) Unwrap() error   { return toolerr.New(toolerr.TransportError, "refused") }
func (s *status) StatusCode() int { return s.code }

func TestWhatIsAFailureOfTheWay(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{toolerr.New(toolerr.TransportError, "reset"), true},
		{&call.ExecutionError{Phase: call.PhaseExecute, Cause: toolerr.New(toolerr.ServerOffline, "died")}, true},
		{&call.ExecutionError{Phase: call.PhaseConnect, Cause: toolerr.New(toolerr.ServerOffline, "cannot be started")}, false},
		{&status{502}, true},
		{&status{404}, false},
		{&call.MCPError{Code: -32603}, false},
		{&call.TimeoutError{}, false},
		{context.Canceled, false},
		{errors.New("odd"), false},
	} {
		require.Equal(t, c.want, breaker.CountsAsFailure(c.err), "%v", c.err)
		l := newLine(breaker.Config{Failures: 1})
		l.err = c.err
		l.call(t, "s") //nolint:errcheck // it fails
		l.call(t, "s") //nolint:errcheck // sent or not
		require.Equal(t, c.want, l.sent == 1, "%v", c.err)
	}
}

func TestOff(t *testing.T) {
	l := newLine(breaker.Config{Off: true, Failures: 1})
	l.err = toolerr.New(toolerr.TransportError, "reset")
	for range 10 {
		require.Same(t, l.err, l.call(t, "s"))
	}
	require.Equal(t, 10, l.sent)
}

func TestConfig(t *testing.T) {
	require.NoError(t, breaker.Config{}.Validate())
	for want, cfg := range map[string]breaker.Config{
		"breaker: failures must not be negative, got -1": {Failures: -1},
		"breaker: within must not be negative, got -1ns": {Within: -1},
		"breaker: open must not be negative, got -1ns":   {Open: -1},
	} {
		require.EqualError(t, cfg.Validate(), want)
	}
}

// A server that dies, or is started anew, fails all the calls under way: that is
// one failure, after which it may be there again.
func TestCallsThatFailTogetherAreOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		died := make(chan struct{})
		h := breaker.New(breaker.Config{}).Stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
			if string(req.Params) == "well" {
				return stagetest.Text("x"), nil
			}
			<-died
			return nil, toolerr.New(toolerr.TransportError, "reset")
		})
		tool := &call.Tool{Name: "t", Server: "s"}
		for range 50 {
			go h(t.Context(), &call.Request{Tool: tool}) //nolint:errcheck // it fails
		}
		time.Sleep(time.Second)
		close(died)
		synctest.Wait()
		for range 3 { // not together, and so some more
			h(t.Context(), &call.Request{Tool: tool}) //nolint:errcheck // it fails
		}
		_, err := h(t.Context(), &call.Request{Tool: tool, Params: []byte("well")})
		require.NoError(t, err)
	})
}
