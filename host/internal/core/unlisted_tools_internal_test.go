package core

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// A call can be cancelled at the moment when its server has been listed.
func TestUnlistedToolOfACancelledCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	list := func(context.Context, *call.Request) (*call.Result, error) {
		cancel()
		return &call.Result{}, nil
	}
	req := &call.Request{Tool: &call.Tool{Name: "s__echo", Server: "s", Unlisted: &call.Unlisted{}}}
	found, err := findUnlisted(ctx, req, pipeline{}, list)
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, found)
}
