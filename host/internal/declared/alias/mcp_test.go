package alias_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/alias"
)

func TestWhatComesBackIsPassedOn(t *testing.T) {
	want := &call.Result{Raw: []byte(`{"content":[{"type":"image"}],"isError":true}`)}
	h, err := alias.New(alias.Config{Server: "s", Tool: "t"}, func(_ context.Context, _ *call.Request, server, tool string) (*call.Result, error) {
		require.Equal(t, "s/t", server+"/"+tool)
		return want, nil
	})
	require.NoError(t, err)
	got, err := h(t.Context(), &call.Request{})
	require.NoError(t, err)
	require.Same(t, want, got)
}

func TestBadConfigurations(t *testing.T) {
	for want, c := range map[string]alias.Config{
		"mcp.server: is missing": {Tool: "t"},
		"mcp.tool: is missing":   {Server: "s"},
	} {
		require.ErrorContains(t, c.Validate(), want)
		_, err := alias.New(c, nil)
		require.Error(t, err)
	}
}
