package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/alias"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// startable is a server that starts only while up is true.
type startable struct{ up atomic.Bool }

func (s *startable) config() config.Server {
	return config.Server{Config: upstream.Config{Name: "s", Era: upstream.Legacy, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
		if !s.up.Load() {
			return errors.New("it does not start")
		}
		return faultserver.Serve(ctx, in, out)
	}}}
}

// openWith opens a host whose only server is s.
func openWith(t *testing.T, s *startable, change func(*config.Config)) *core.App {
	t.Helper()
	cfg := config.Config{Servers: []config.Server{s.config()}}
	if change != nil {
		change(&cfg)
	}
	a, err := core.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

// callAs calls a tool as a client does, and returns the result.
func callAs(t *testing.T, a *core.App, tool *call.Tool, arguments string) (string, error) {
	t.Helper()
	params := `{"name":"` + tool.Name + `","arguments":` + arguments + `}`
	res, err := a.Handler(t.Context(), &call.Request{Tool: tool, Params: json.RawMessage(params), Caller: call.Caller{EntryPoint: "stdio", ID: "c"}})
	if err != nil {
		return "", err
	}
	return string(res.Raw), nil
}

// unlisted returns the tool with a served name, which is not listed.
func unlisted(t *testing.T, a *core.App, name string) *call.Tool {
	t.Helper()
	tool, ok := a.Catalog.View().Lookup(t.Context(), name)
	require.True(t, ok, name)
	require.NotNil(t, tool.Unlisted, name)
	return tool
}

func TestCallOfAnUnlistedTool(t *testing.T) {
	s := &startable{}
	var mu sync.Mutex
	var seen []stats.Observation
	a := openWith(t, s, nil)
	a.OnCall(func(o stats.Observation) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, o)
	})
	first := unlisted(t, a, "s__echo") // with the error of the list
	require.Error(t, first.Unlisted.Err)
	later := unlisted(t, a, "s__echo")
	require.NoError(t, later.Unlisted.Err)
	for _, tool := range []*call.Tool{first, later} {
		_, err := callAs(t, a, tool, `{}`)
		require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
		require.ErrorContains(t, err, "server s could not execute s__echo")
		var failed *call.ExecutionError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, call.PhaseConnect, failed.Phase)
	}
	_, err := a.Call(t.Context(), "s__echo", nil)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	nothing := unlisted(t, a, "s__nothing")
	mu.Lock()
	require.Len(t, seen, 3)
	for _, o := range seen {
		require.Equal(t, []any{"s__echo", "s", toolerr.ServerOffline}, []any{o.Tool, o.Server, o.Code})
	}
	mu.Unlock()

	s.up.Store(true)
	require.Eventually(t, func() bool { // after the pause between attempts
		result, err := callAs(t, a, later, `{"text":"hello"}`)
		return err == nil && json.Valid([]byte(result))
	}, time.Minute, 10*time.Millisecond)
	_, err = callAs(t, a, later, `{"n":"no number"}`)
	require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), "the listed tool has a schema")
	_, err = callAs(t, a, nothing, `{}`)
	require.Equal(t, toolerr.ToolNotFound, toolerr.CodeOf(err))
	tool, ok := a.Catalog.View().Lookup(t.Context(), "s__echo")
	require.True(t, ok)
	require.Nil(t, tool.Unlisted)
}

func TestManyFirstCallsOfAnUnlistedTool(t *testing.T) {
	s := &startable{}
	a := openWith(t, s, nil)
	unlisted(t, a, "s__echo")
	tool := unlisted(t, a, "s__echo")
	s.up.Store(true)
	require.Eventually(t, func() bool {
		_, err := callAs(t, a, tool, `{}`)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	var work sync.WaitGroup
	for range 20 {
		work.Go(func() {
			if _, err := callAs(t, a, tool, `{}`); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
}

// The policy decides about unlisted tools as about others, and limits their calls.
func TestPolicyOfUnlistedTools(t *testing.T) {
	s := &startable{}
	a := openWith(t, s, func(cfg *config.Config) {
		cfg.Stages.Policy = policy.Config{
			Block: []string{"s__blocked"}, MaxTotalCalls: 2,
			Rules: []policy.Rule{{Tool: "s__denied", Do: policy.Deny}, {Tool: "s__echo", Args: map[string]string{"text": "no*"}, Do: policy.Deny}},
		}
	})
	for _, name := range []string{"s__blocked", "s__denied"} {
		_, err := callAs(t, a, unlisted(t, a, name), `{}`)
		require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err), name)
	}
	echo := unlisted(t, a, "s__echo")
	_, err := callAs(t, a, echo, `{"text":"not this"}`)
	require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))
	for _, want := range []toolerr.Code{toolerr.ServerOffline, toolerr.ServerOffline, toolerr.LimitReached} {
		_, err := callAs(t, a, echo, `{}`)
		require.Equal(t, want, toolerr.CodeOf(err))
	}
}

// A tool that an agent may not use under another of its names is not called.
func TestUnlistedToolOfAnAgent(t *testing.T) {
	s := &startable{}
	a := openWith(t, s, nil)
	unlisted(t, a, "s__echo")
	tool := unlisted(t, a, "s__echo")
	s.up.Store(true)
	require.Eventually(t, func() bool {
		_, err := a.Handler(t.Context(), &call.Request{Tool: tool, Params: json.RawMessage(`{}`), Caller: call.Caller{Tools: func(string) bool { return false }}})
		return toolerr.CodeOf(err) == toolerr.ToolNotFound
	}, time.Minute, 10*time.Millisecond)
}

func TestUnlistedToolsOfViews(t *testing.T) {
	s := &startable{}
	a := openWith(t, s, func(cfg *config.Config) {
		cfg.Declared = []manifest.Tool{{Name: "alias", Mode: manifest.MCP, MCP: &alias.Config{Server: "s", Tool: "echo"}, Input: json.RawMessage(`{"type":"object"}`)}}
		cfg.Profiles = []catalog.Profile{{Name: "some", Block: []string{"s__*"}}, {Name: "all"}}
	})
	all := doors(t, a)
	require.Equal(t, toolerr.ServerOffline, all["stdio"](t, "alias", `{}`))
	require.Equal(t, toolerr.ServerOffline, all["stdio"](t, "s__echo", `{}`))
	require.Equal(t, toolerr.ServerOffline, all["stdio, modern"](t, "s__echo", `{}`))
	set := a.Toolset(call.Caller{EntryPoint: "stdio", ID: "c", Profile: "some"}, nil)
	_, err := set.Call(t.Context(), &llm.ToolCall{Name: "s__echo"}, nil)
	require.Equal(t, toolerr.ToolNotFound, toolerr.CodeOf(err))
	set = a.Toolset(call.Caller{EntryPoint: "stdio", ID: "c", Profile: "all"}, nil)
	_, err = set.Call(t.Context(), &llm.ToolCall{Name: "s__echo"}, nil)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
}

// The error with which a server answers tools/list is not the answer of the call.
func TestUnlistedToolOfAServerThatRefusesTheList(t *testing.T) {
	serve := func(_ context.Context, in io.Reader, out io.Writer) error {
		for requests := json.NewDecoder(in); ; {
			var req struct {
				ID     json.RawMessage
				Method string
			}
			if err := requests.Decode(&req); err != nil {
				return nil //nolint:nilerr // the host closes the input
			}
			answer := `"error":{"code":-32603,"message":"list broken"}`
			if req.Method == "initialize" {
				answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
			}
			if len(req.ID) > 0 {
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", req.ID, answer) //nolint:errcheck // the host may have closed it
			}
		}
	}
	a, err := core.Open(config.Config{Servers: []config.Server{{Config: upstream.Config{Name: "s", Era: upstream.Legacy, Serve: serve}}}})
	require.NoError(t, err)
	t.Cleanup(a.Close)
	for range 2 { // the first call has the error of its own request of the list
		_, err = callAs(t, a, unlisted(t, a, "s__echo"), `{}`)
		require.ErrorContains(t, err, "server s could not execute s__echo")
		require.ErrorContains(t, err, "list broken")
		var answered *call.MCPError
		require.False(t, errors.As(err, &answered))
	}
}
