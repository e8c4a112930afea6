package limit_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
)

// While a call's client is asked, another call has its permit; afterwards the
// books are as before.
func TestACallWhoseClientIsAskedKeepsNobodyWaiting(t *testing.T) {
	l := limit.New(limit.Config{Concurrent: 1})
	tool := &call.Tool{Name: "t", Server: "s"}
	ran := false
	other := l.Stage(func(context.Context, *call.Request) (*call.Result, error) {
		ran = true
		return stagetest.Text("done"), nil
	})
	asking := l.Stage(func(ctx context.Context, req *call.Request) (*call.Result, error) {
		answer, err := req.Ask(ctx, "elicitation/create", nil)
		require.Equal(t, 1, l.Loads()[0].Running)
		return &call.Result{Raw: answer}, err
	})
	res, err := asking(t.Context(), &call.Request{Tool: tool, Ask: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		_, err := other(ctx, &call.Request{Tool: tool})
		return json.RawMessage(`{"yes":1}`), err
	}})
	require.NoError(t, err)
	require.True(t, ran)
	require.Equal(t, `{"yes":1}`, string(res.Raw))
	require.Zero(t, l.Loads()[0].Running)
}
