package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/cache"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/spill"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// open opens a host over one fixture server, s.
func open(t *testing.T, cfg config.Config, spec dialect.Server) *core.App {
	t.Helper()
	s := server(t, "s", false)
	spec.Name = "s"
	s.Spec = spec
	cfg.Servers = append(cfg.Servers, s)
	a, err := core.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

func callTool(ctx context.Context, a *core.App, name, arguments string) (string, error) {
	tool, ok := a.Catalog.Lookup(ctx, name)
	if !ok {
		return "", toolerr.New(toolerr.ToolNotFound, "%s", name)
	}
	res, err := a.Handler(ctx, &call.Request{
		Tool: tool, Params: []byte(`{"name":"` + name + `","arguments":` + arguments + `}`), Caller: call.Caller{EntryPoint: "cli", ID: "me"},
	})
	if err != nil {
		return "", err
	}
	return string(res.Raw), nil
}

func TestCallsAreCountedAndWrittenDown(t *testing.T) {
	state := t.TempDir()
	a := open(t, config.Config{State: state}, dialect.Server{MaxConcurrent: 3})
	got, err := callTool(t.Context(), a, "s__echo", `{"text":"a","token":"hunter2"}`)
	require.NoError(t, err)
	require.Equal(t, `{"content":[{"type":"text","text":"{\"text\":\"a\",\"token\":\"hunter2\"}"}]}`, got)
	got, err = callTool(t.Context(), a, "s__fail", `{}`)
	require.NoError(t, err)
	require.Contains(t, got, "isError")

	rows := a.Stats()
	require.Len(t, rows, 2)
	require.Equal(t, "s__echo", rows[0].Tool)
	require.EqualValues(t, 1, rows[0].Calls)
	require.EqualValues(t, 0, rows[0].Errors)
	require.EqualValues(t, 1, rows[1].Errors)
	require.Equal(t, []limit.Load{{Server: "s", Permits: 3}}, a.Loads())

	a.Close()
	lost, err := a.AuditLosses()
	require.Zero(t, lost)
	require.NoError(t, err)
	var events []audit.Event
	skipped, err := audit.Read(core.AuditDir(state), time.Time{}, func(e audit.Event) { events = append(events, e) })
	require.NoError(t, err)
	require.Zero(t, skipped)
	require.Len(t, events, 4)
	require.JSONEq(t, `{"text":"a","token":"***"}`, string(events[0].Args))
}

func TestAServersTimeoutHolds(t *testing.T) {
	a := open(t, config.Config{}, dialect.Server{Timeout: 50 * time.Millisecond})
	_, err := callTool(t.Context(), a, "s__hang", `{}`)
	require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err))
	require.EqualError(t, err, "s__hang did not answer within 50ms; narrow the call and try again")
}

func TestABadStageIsNamed(t *testing.T) {
	_, err := core.Open(config.Config{Stages: config.Stages{Limit: limit.Config{Queue: -1}}})
	require.EqualError(t, err, "limit: queue must not be negative, got -1")
}

func TestStagesKeepToTheirOrder(t *testing.T) {
	state := t.TempDir()
	a := open(t, config.Config{State: state, Stages: config.Stages{
		Spill:  spill.Config{MaxResult: 20_000},
		Cache:  cache.Config{Tools: []string{"*"}},
		Policy: policy.Config{Block: []string{"s__crash"}, Rules: []policy.Rule{{Tool: "s__fork", Do: policy.Ask}}},
	}}, dialect.Server{})

	// Refused, and written down all the same; the server has not been called.
	for _, name := range []string{"s__crash", "s__fork"} {
		_, err := callTool(t.Context(), a, name, `{"text":"x"}`)
		require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))
	}
	require.Empty(t, a.Loads())

	got, err := callTool(t.Context(), a, "s__blob", `{"n":50000}`)
	require.NoError(t, err)
	require.Contains(t, got, "omitted; full text in "+state)
	require.Less(t, len(got), 20_000)

	a.Close()
	var events []string
	_, err = audit.Read(core.AuditDir(state), time.Time{}, func(e audit.Event) { events = append(events, e.Event+" "+e.Tool+" "+e.Code) })
	require.NoError(t, err)
	require.Equal(t, []string{
		"tool.call.started s__crash ", "tool.call.failed s__crash POLICY_DENIED",
		"tool.call.started s__fork ", "tool.call.failed s__fork POLICY_DENIED",
		"tool.call.started s__blob ", "tool.call.completed s__blob ",
	}, events)
	require.Empty(t, a.UncheckedToolReasons())
}
