package call_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestChainRunsTheFirstStageOutermost(t *testing.T) {
	var order []string
	stage := func(name string) call.Stage {
		return func(next call.Handler) call.Handler {
			return func(ctx context.Context, req *call.Request) (*call.Result, error) {
				order = append(order, name+">")
				defer func() { order = append(order, "<"+name) }()
				return next(ctx, req)
			}
		}
	}
	h := call.Chain(func(context.Context, *call.Request) (*call.Result, error) {
		order = append(order, "route")
		return nil, nil
	}, stage("a"), stage("b"))
	_, err := h(t.Context(), &call.Request{})
	require.NoError(t, err)
	require.Equal(t, []string{"a>", "b>", "route", "<b", "<a"}, order)
}

func TestErrorsCarryTheirCodes(t *testing.T) {
	cause := toolerr.New(toolerr.ServerOffline, "it exited")
	for _, c := range []struct {
		err  error
		code toolerr.Code
		text string
	}{
		{&call.MCPError{Server: "s", Code: -32602, Message: "no such tool"}, toolerr.ProtocolError, "server s answered with error -32602: no such tool"},
		{&call.ExecutionError{Tool: "t", Phase: call.PhaseConnect, Message: "server s is offline", Cause: cause}, toolerr.ServerOffline, "server s is offline: it exited"},
		{&call.ExecutionError{Message: "odd"}, toolerr.ExecutionError, "odd"},
		{&call.TimeoutError{Tool: "t", After: time.Second}, toolerr.Timeout, "t did not answer within 1s; narrow the call and try again"},
	} {
		require.Equal(t, c.code, toolerr.CodeOf(c.err))
		require.EqualError(t, c.err, c.text)
	}
	require.True(t, errors.Is(&call.TimeoutError{}, context.DeadlineExceeded))
}
