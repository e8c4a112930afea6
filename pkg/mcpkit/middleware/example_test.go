package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/middleware"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// simple makes a read-only tool from a function, for the examples.
func simple(d mcpkit.Def, f func(ctx context.Context) (*mcpkit.Result, error)) *mcpkit.Tool {
	d.Hints = mcpkit.Hints{ReadOnly: true, Idempotent: true}
	t, err := mcpkit.NewTool(d, func(ctx context.Context, _ struct{}) (*mcpkit.Result, error) { return f(ctx) })
	if err != nil {
		panic(err)
	}
	return t
}

// A tool that fails twice with a transient error. Each middleware can also be
// set in Command.Middleware, for all tools of a program.
func ExampleRetry() {
	attempts := 0
	flaky := simple(mcpkit.Def{Name: "flaky"}, func(context.Context) (*mcpkit.Result, error) {
		if attempts++; attempts < 3 {
			return nil, toolerr.New(toolerr.TransportError, "connection reset")
		}
		return &mcpkit.Result{Text: "done"}, nil
	}).With(middleware.Retry(middleware.RetryPolicy{
		MaxRetries: 4, Base: time.Millisecond,
		OnRetry: func(t *mcpkit.Tool, attempt int, _ time.Duration, err error) {
			fmt.Println(t.Name(), "attempt", attempt, "failed:", err)
		},
	}))
	fmt.Println(flaky.Call(context.Background(), nil).Text)
	// Output:
	// flaky attempt 1 failed: connection reset
	// flaky attempt 2 failed: connection reset
	// done
}

// An error marked as permanent is not retried; OnGiveUp rewrites the last
// error.
func ExamplePermanent() {
	attempts := 0
	gone := simple(mcpkit.Def{Name: "gone"}, func(context.Context) (*mcpkit.Result, error) {
		attempts++
		return nil, middleware.Permanent(errors.New("the account is closed"))
	}).With(middleware.Retry(middleware.RetryPolicy{
		Retryable: func(error) bool { return true },
		OnGiveUp: func(_ *mcpkit.Tool, attempts int, err error) error {
			return fmt.Errorf("after %d attempt: %w", attempts, err)
		},
	}))
	fmt.Println(gone.Call(context.Background(), nil).Text)
	// Output: after 1 attempt: the account is closed
}

func ExampleLogging() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "took" {
			return slog.Attr{}
		}
		return a
	}}))
	fail := simple(mcpkit.Def{Name: "fail"}, func(context.Context) (*mcpkit.Result, error) {
		return nil, toolerr.New(toolerr.NotFound, "no such thing")
	}).With(middleware.Logging(log))
	fail.Call(context.Background(), nil)
	// Output: level=WARN msg=call tool=fail code=NOT_FOUND
}

func ExampleMetrics() {
	calls := map[string]int{} // concurrent calls need a counter that is safe for them
	hello := simple(mcpkit.Def{Name: "hello"}, func(context.Context) (*mcpkit.Result, error) {
		return &mcpkit.Result{Text: "hello"}, nil
	}).With(middleware.Metrics(func(_ context.Context, o middleware.Observation) { calls[o.Tool]++ }))
	hello.Call(context.Background(), nil)
	hello.Call(context.Background(), nil)
	fmt.Println(calls)
	// Output: map[hello:2]
}
