package core_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/internal/testkit/leakcheck"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestMain(m *testing.M) {
	mcpkittest.MockChild()
	if len(os.Args) > 1 && os.Args[1] == faultserver.Arg {
		os.Exit(faultserver.Main(os.Args[2:]))
	}
	os.Exit(leakcheck.Tests{Tests: m}.Run())
}

func server(t *testing.T, name string, bundled bool, args ...string) config.Server {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return config.Server{Bundled: bundled, Config: upstream.Config{
		Name: name, Command: append([]string{self, faultserver.Arg}, args...), Env: []string{"GORACE=atexit_sleep_ms=0"}, KillsOwnTree: bundled,
	}}
}

func TestOneHostOverSeveralServers(t *testing.T) {
	a, err := core.Open(config.Config{Servers: []config.Server{
		server(t, "ours", true, "-era", "legacy"), server(t, "theirs", false, "-page", "7"), server(t, "broken", false, "-start", "crash"),
	}})
	require.NoError(t, err)
	defer a.Close()
	for _, s := range a.Servers() {
		require.Equal(t, "configured", s.Status().State, "nothing is started before it is needed")
	}

	tool, ok := a.Catalog.Lookup(t.Context(), "theirs__echo")
	require.True(t, ok)
	require.Equal(t, "configured", a.Servers()[0].Status().State, "a call starts its server alone")
	res, err := a.Handler(t.Context(), &call.Request{Tool: tool, Params: []byte(`{"name":"theirs__echo","arguments":{"a":1}}`)})
	require.NoError(t, err)
	require.Equal(t, `{"content":[{"type":"text","text":"{\"a\":1}"}]}`, string(res.Raw))

	tools := a.Catalog.Snapshot(t.Context()).Tools()
	require.Len(t, tools, 48)
	require.Equal(t, "echo", tools[0].Name)
	require.Equal(t, "theirs__echo", tools[24].Name)
	require.Equal(t, faultserver.Definition("echo"), string(tools[0].Definition))
	require.ErrorContains(t, a.Catalog.Errors()[0], "cannot find my configuration")

	_, err = a.Handler(t.Context(), &call.Request{Tool: &call.Tool{Name: "x", Server: "gone"}})
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
}

func TestABadServerIsNamed(t *testing.T) {
	_, err := core.Open(config.Config{Servers: []config.Server{{Config: upstream.Config{Name: "x"}}}})
	require.ErrorContains(t, err, "server x: command is empty")
}

func TestServersThatAreNotToWaitAreStartedAtOnce(t *testing.T) {
	eager, off := server(t, "eager", false), false
	eager.Spec = dialect.Server{Name: "eager", Lazy: &off, Scope: "session", Timeout: time.Minute}
	a, err := core.Open(config.Config{
		Servers: []config.Server{server(t, "lazy", false), eager},
		Off:     []dialect.Server{{Name: "off", Command: []string{"nowhere"}}},
	})
	require.NoError(t, err)
	defer a.Close()
	a.StartBackground()
	state := func(i int) upstream.State { return a.Servers()[i].Status().State }
	require.Eventually(t, func() bool { return state(1) == upstream.Ready }, time.Minute, 5*time.Millisecond)
	require.Equal(t, upstream.Configured, state(0))
	require.Equal(t, upstream.Disabled, state(2))
	require.Len(t, a.Catalog.Snapshot(t.Context()).Tools(), 48)
	require.Empty(t, a.Catalog.Errors(), "what is switched off is no error")
}
