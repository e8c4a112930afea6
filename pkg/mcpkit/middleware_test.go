package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

type none struct{}

func newTool(t *testing.T, d Def, fn func(ctx context.Context) (*Result, error)) *Tool {
	t.Helper()
	d.Name, d.Title, d.Description = "work", "Work", "For tests."
	made, err := NewTool(d, func(ctx context.Context, _ none) (*Result, error) { return fn(ctx) })
	require.NoError(t, err)
	return made
}

// callTool is the innermost handler.
func callTool(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
	return t.Call(ctx, args)
}

func TestChainOrder(t *testing.T) {
	var order []string
	mark := func(name string) Middleware {
		return func(next Handler) Handler {
			return func(ctx context.Context, tool *Tool, args json.RawMessage) *CallResult {
				order = append(order, name)
				res := next(ctx, tool, args)
				order = append(order, "/"+name)
				return res
			}
		}
	}
	work := newTool(t, Def{}, func(context.Context) (*Result, error) {
		order = append(order, "tool")
		return &Result{Text: "x"}, nil
	})
	wrapHandler(callTool, mark("outer"), mark("inner"))(t.Context(), work, nil)
	require.Equal(t, []string{"outer", "inner", "tool", "/inner", "/outer"}, order)
}

// A panic anywhere becomes INTERNAL; its value is only logged.
func TestRecover(t *testing.T) {
	work := newTool(t, Def{Timeout: time.Minute, MaxConcurrent: 1}, func(context.Context) (*Result, error) { panic("secret state") })
	middleware := func(Handler) Handler {
		return func(context.Context, *Tool, json.RawMessage) *CallResult { panic("secret state") }
	}
	for name, handler := range map[string]Handler{
		"tool":       wrapHandler(callTool, standardMiddleware()...),
		"middleware": wrapHandler(callTool, append(standardMiddleware(), middleware)...),
	} {
		t.Run(name, func(t *testing.T) {
			res := handler(t.Context(), work, nil)
			require.True(t, res.IsError)
			require.Equal(t, toolerr.Internal, res.Code)
			require.NotContains(t, string(res.JSON()), "secret")
			require.NotContains(t, string(res.JSON()), ".go:")
			var p *callerror.Panic
			require.True(t, errors.As(res.Err, &p))
			require.Equal(t, "secret state", p.Value)
			require.Contains(t, string(p.Stack), ".go:")
			// Another call can run again.
			require.Equal(t, toolerr.Internal, handler(t.Context(), work, nil).Code)
		})
	}
}

// A tool that respects its deadline answers with partial results.
func TestDeadlineMinded(t *testing.T) {
	work := newTool(t, Def{Timeout: time.Millisecond}, func(ctx context.Context) (*Result, error) {
		<-ctx.Done()
		return &Result{Text: "3 found before the deadline"}, nil
	})
	res := wrapHandler(callTool, standardMiddleware()...)(t.Context(), work, nil)
	require.False(t, res.IsError)
	require.Equal(t, "3 found before the deadline", res.Text)
}

// A call of a tool that ignores its deadline is answered with TIMEOUT; it counts
// as running until the tool returns.
func TestDeadlineOverrun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var runs atomic.Int32
		work := newTool(t, Def{Timeout: time.Millisecond, MaxConcurrent: 1}, func(context.Context) (*Result, error) {
			runs.Add(1)
			<-release
			return &Result{Text: "late"}, nil
		})
		handler := wrapHandler(callTool, recoverPanic, enforceToolTimeout(time.Millisecond), limitConcurrency())
		res := handler(t.Context(), work, nil)
		require.Equal(t, toolerr.Timeout, res.Code)
		require.Contains(t, res.Text, "work did not finish within 1ms")
		require.Equal(t, toolerr.Timeout, handler(t.Context(), work, nil).Code, "no turn came free")
		require.EqualValues(t, 1, runs.Load())
		close(release)
		synctest.Wait()
		require.Equal(t, "late", handler(t.Context(), work, nil).Text)
	})
}

func TestConcurrency(t *testing.T) {
	const limit, calls = 3, 50
	var now, most atomic.Int32
	work := newTool(t, Def{MaxConcurrent: limit}, func(context.Context) (*Result, error) {
		n := now.Add(1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		for range 100 { // let the others in
			runtime.Gosched()
		}
		now.Add(-1)
		return &Result{Text: "x"}, nil
	})
	handler := wrapHandler(callTool, limitConcurrency())
	done := make(chan *CallResult, calls)
	for range calls {
		go func() { done <- handler(t.Context(), work, nil) }()
	}
	for range calls {
		require.False(t, (<-done).IsError)
	}
	require.LessOrEqual(t, most.Load(), int32(limit))
}

// A call that is cancelled while it waits to run never runs.
func TestConcurrencyCancelled(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	var runs atomic.Int32
	work := newTool(t, Def{MaxConcurrent: 1}, func(context.Context) (*Result, error) {
		runs.Add(1)
		close(began)
		<-release
		return &Result{Text: "x"}, nil
	})
	handler := wrapHandler(callTool, limitConcurrency())
	done := make(chan struct{})
	go func() { defer close(done); handler(t.Context(), work, nil) }()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, toolerr.Cancelled, handler(ctx, work, nil).Code)
	close(release)
	<-done
	require.EqualValues(t, 1, runs.Load())
}
