package core

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
)

// The catalog keeps the lists of a server to which a user can sign in during a reload that
// does not change it: another source would have it listed again, which starts a stopped
// server, and would list the sign-in tool in place of its tools if the sign-in has expired.
func TestAReloadKeepsTheSourceOfUnchangedServers(t *testing.T) {
	web := httptest.NewServer(faultserver.Handler())
	defer web.Close()
	url := web.URL + "/mcp"
	cfg := config.Config{State: t.TempDir(), Servers: []config.Server{{
		Config: upstream.Config{Name: "s", URL: url}, Spec: dialect.Server{Name: "s", URL: url},
	}}}
	a, err := Open(cfg)
	require.NoError(t, err)
	defer a.Close()
	_, err = ask(t.Context(), a, "s__echo", `{}`)
	require.NoError(t, err)
	source := func() *signInSource {
		t.Helper()
		s, ok := a.snapshot.Load().byName["s"].entry.Source.(*signInSource)
		require.True(t, ok)
		return s
	}
	first := source()
	require.True(t, first.listed.Load())

	cfg.Stages.Timeout.Default = 7 * time.Second
	require.NoError(t, a.apply(t.Context(), cfg))
	require.Same(t, first, source())

	cfg.Servers = []config.Server{{
		Config: upstream.Config{Name: "s", URL: url, AllowPrivate: true}, Spec: dialect.Server{Name: "s", URL: url, AllowPrivate: true},
	}}
	require.NoError(t, a.apply(t.Context(), cfg))
	require.NotSame(t, first, source(), "another server")
	_, err = ask(t.Context(), a, "s__echo", `{}`)
	require.NoError(t, err)
}
