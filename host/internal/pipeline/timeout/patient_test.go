package timeout_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/timeout"
)

func TestTheClockStandsStillWhileTheClientIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := timeout.New(timeout.Config{Default: 10 * time.Second})
		slow := stage(func(ctx context.Context, req *call.Request) (*call.Result, error) {
			time.Sleep(6 * time.Second)
			if _, err := req.Ask(ctx, "elicitation/create", nil); err != nil {
				return nil, err
			}
			wait, err := time.ParseDuration(req.Tool.Original)
			if err != nil {
				return nil, err
			}
			select {
			case <-time.After(wait):
				return stagetest.Text("done"), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			time.Sleep(time.Hour)
			return json.RawMessage(`{}`), nil
		}
		_, err := slow(t.Context(), &call.Request{Tool: &call.Tool{Name: "t", Original: "3s"}, Ask: ask})
		require.NoError(t, err)
		_, err = slow(t.Context(), &call.Request{Tool: &call.Tool{Name: "t", Original: "5s"}, Ask: ask})
		var late *call.TimeoutError
		require.True(t, errors.As(err, &late), "%v", err)
		require.Equal(t, 10*time.Second, late.After)
	})
}

// A chain has its own time, in which none of its steps' approvals counts,
// though its client cannot be asked.
func TestTheClockIsPausedWhileAStepWaitsForApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := timeout.New(timeout.Config{Default: 10 * time.Second, MakesCalls: func(server string) bool { return server == "chain" }})
		step := stage(func(ctx context.Context, _ *call.Request) (*call.Result, error) {
			resume := call.PauseClocks(ctx) // as the stage of approvals does
			time.Sleep(time.Hour)
			resume()
			return stagetest.Text("done"), ctx.Err()
		})
		chain := stage(func(ctx context.Context, _ *call.Request) (*call.Result, error) {
			time.Sleep(6 * time.Second)
			return step(ctx, &call.Request{Tool: &call.Tool{Name: "step", Server: "chain"}})
		})
		_, err := chain(t.Context(), &call.Request{Tool: &call.Tool{Name: "chain", Server: "chain"}})
		require.NoError(t, err)
	})
}
