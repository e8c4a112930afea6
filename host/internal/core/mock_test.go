package core_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// transports are the ways in which a mock is reached.
func transports(t *testing.T, m *mcpkittest.Mock) map[string]config.Config {
	t.Helper()
	command, env := m.Command(t)
	m.RequireBearer("sesame")
	web := httptest.NewServer(m)
	t.Cleanup(web.Close)
	return map[string]config.Config{
		"in-process": {Servers: []config.Server{{Config: upstream.Config{Name: "m", Serve: m.Serve, MaxLine: 1 << 20, ProbeTimeout: mcpkittest.MaxWait}}}},
		"child":      {Servers: []config.Server{{Config: upstream.Config{Name: "m", Command: command, Env: env, MaxLine: 1 << 20, ProbeTimeout: mcpkittest.MaxWait}}}},
		"http":       {Remote: []dialect.Server{{Name: "m", URL: web.URL, APIKey: secret.Text("sesame")}}},
	}
}

// eachWay runs a test against a mock with a tool a, in every way.
func eachWay(t *testing.T, f func(t *testing.T, m *mcpkittest.Mock, a *core.App)) {
	for _, way := range []string{"in-process", "child", "http"} {
		t.Run(way, func(t *testing.T) {
			m := mcpkittest.NewMock("mock")
			m.AddTool("a", `{"annotations":{"readOnlyHint":true}}`)
			m.AddTool("b", "")
			cfg := transports(t, m)[way]
			cfg.Stages.Retry.Attempts = 1
			a, err := core.Open(cfg)
			require.NoError(t, err)
			defer a.Close()
			f(t, m, a)
		})
	}
}

func TestAMockIsAServer(t *testing.T) {
	eachWay(t, func(t *testing.T, m *mcpkittest.Mock, a *core.App) {
		m.SetPageSize(1)
		m.SetNoiseLine("starting up …")
		require.Len(t, a.List(t.Context()), 2)
		answer, err := a.Call(t.Context(), "m__a", map[string]int{"x": 1})
		require.NoError(t, err)
		require.Equal(t, `{"x":1}`, answer.Text)
		m.SetResponse("a", "fixed")
		answer, err = a.Call(t.Context(), "m__a", nil)
		require.NoError(t, err)
		require.Equal(t, "fixed", answer.Text)
		m.SetToolError("a", "no")
		_, err = a.Call(t.Context(), "m__a", nil)
		require.EqualError(t, err, "no")
		calls := m.Calls()
		require.Len(t, calls, 3)
		require.JSONEq(t, `{"x":1}`, string(calls[0].Arguments))

		m.AddTool("c", "")
		m.NotifyListChanged()
		require.Eventually(t, func() bool { return len(a.List(t.Context())) == 3 }, mcpkittest.MaxWait, time.Millisecond)
	})
}

func TestWhatAMocksFaultsComeTo(t *testing.T) {
	eachWay(t, func(t *testing.T, m *mcpkittest.Mock, a *core.App) {
		fails := func(tool string) error {
			t.Helper()
			_, err := a.Call(t.Context(), tool, nil)
			require.Error(t, err)
			return err
		}
		m.SetError("a", -32603, "odd")
		require.Equal(t, toolerr.ProtocolError, toolerr.CodeOf(fails("m__a")))

		if len(a.Config.Servers) > 0 { // over HTTP it takes 64 MiB
			m.SetHugeLine("a", 2<<20)
			require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(fails("m__a")))
		}

		m.ClearFault("a")
		hold := make(chan struct{})
		m.SetFault("a", mcpkittest.Fault{Hold: hold})
		ctx, cancel := context.WithCancel(t.Context())
		arrival, over := m.NextCall(), make(chan error, 1)
		go func() {
			_, err := a.Call(ctx, "m__a", nil)
			over <- err
		}()
		<-arrival
		cancel()
		require.ErrorIs(t, <-over, context.Canceled)
		require.Eventually(t, func() bool { calls := m.Calls(); return calls[len(calls)-1].Cancelled }, mcpkittest.MaxWait, time.Millisecond)
		close(hold)

		m.SetDelay("a", time.Millisecond)
		_, err := a.Call(t.Context(), "m__a", nil)
		require.NoError(t, err)

		m.SetCrash("b")
		before := len(m.Calls())
		code := toolerr.CodeOf(fails("m__b"))
		require.Contains(t, []toolerr.Code{toolerr.ServerOffline, toolerr.TransportError}, code)
		require.Len(t, m.Calls(), before+1, "it is not sent again")
	})
}

// A line that is no message cannot be told whose answer it is: the call ends by
// its deadline over streams, and at once over HTTP.
func TestAMalformedAnswer(t *testing.T) {
	eachWay(t, func(t *testing.T, m *mcpkittest.Mock, a *core.App) {
		m.SetMalformed("a")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, ok := a.Get(t.Context(), "m__a")
		require.True(t, ok)
		_, err := a.Call(ctx, "m__a", nil)
		require.Error(t, err)
		m.ClearFault("a")
		_, err = a.Call(t.Context(), "m__a", nil)
		require.NoError(t, err, "nothing else is lost")
	})
}

func TestAMockWantsItsToken(t *testing.T) {
	m := mcpkittest.NewMock("mock")
	m.AddTool("a", "")
	cfg := transports(t, m)["http"]
	cfg.Remote[0].APIKey = "wrong"
	a, err := core.Open(cfg)
	require.NoError(t, err)
	defer a.Close()
	_, err = a.Session("m").ListTools(t.Context())
	require.Equal(t, toolerr.AuthFailed, toolerr.CodeOf(err), err)
	require.False(t, strings.Contains(err.Error(), "wrong"))
}

func TestAMockOfTheModernEra(t *testing.T) {
	eachWay(t, func(t *testing.T, m *mcpkittest.Mock, a *core.App) {
		m.EnableModern()
		m.SetPageSize(1)
		require.Len(t, a.List(t.Context()), 2)
		answer, err := a.Call(t.Context(), "m__a", map[string]int{"x": 1})
		require.NoError(t, err)
		require.Equal(t, `{"x":1}`, answer.Text)
		require.Equal(t, "modern", string(a.Servers()[0].Status().Era))
		require.Contains(t, string(m.Calls()[0].Meta), "2026-07-28")
	})
}
