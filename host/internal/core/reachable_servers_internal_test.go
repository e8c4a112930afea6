package core

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/alias"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/chain"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/mock"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/cache"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// led is a declared tool that leads to others.
func led(name string, to *alias.Config, steps ...chain.Step) manifest.Tool {
	t := manifest.Tool{Name: name, Mode: manifest.MCP, MCP: to, Input: json.RawMessage(`{"type":"object"}`)}
	if to == nil {
		t.Mode, t.Chain = manifest.Chain, &chain.Config{Steps: steps}
	}
	return t
}

// moved is a configuration with one server in another place.
func moved(cfg config.Config, server int, place string) config.Config {
	cfg.Servers = slices.Clone(cfg.Servers)
	cfg.Servers[server].Spec.Command = []string{place}
	return cfg
}

// What is approved is for the servers that the call leads to, through other
// names and chains, too.
func TestAnApprovalIsForWhatIsBehind(t *testing.T) {
	state := t.TempDir()
	names := []string{"alias", "alias_of_alias", "steps", "steps_within"}
	stages := config.Stages{Approval: approve.Config{ClientOff: true}}
	for _, name := range names {
		stages.Policy.Rules = append(stages.Policy.Rules, policy.Rule{Tool: name, Do: policy.Ask})
	}
	a, cfg := within(t, config.Config{
		State: state, Store: backend.Config{Dir: state}, Stages: stages,
		Declared: []manifest.Tool{
			led("alias", &alias.Config{Server: "s", Tool: "echo"}),
			led("alias_of_alias", &alias.Config{Server: "quiet", Tool: "quiet"}),
			led("quiet", &alias.Config{Server: "s", Tool: "echo"}),
			led("steps", nil, chain.Step{Tool: "s__echo"}),
			led("steps_within", nil, chain.Step{If: &chain.Condition{Value: json.RawMessage(`true`)}, Then: []chain.Step{{Tool: "quiet"}}}),
		},
	}, "s", "other")
	for _, name := range names {
		_, err := ask(t.Context(), a, name, `{}`)
		require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err), name)
	}
	all, err := a.Approvals().List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, len(names))
	for _, r := range all {
		_, err := a.Decide(t.Context(), r.ID, approve.Decision{Approve: true})
		require.NoError(t, err)
	}
	require.NoError(t, a.apply(t.Context(), moved(cfg, 0, "production")))
	for _, name := range names {
		_, err := ask(t.Context(), a, name, `{}`)
		require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err), "%s was approved in another place", name)
	}
	all, err = a.Approvals().List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2*len(names))
	require.Contains(t, all[len(all)-1].Where, "production")
	require.NoError(t, a.apply(t.Context(), moved(cfg, 1, "production")))
	for _, name := range names {
		_, err := ask(t.Context(), a, name, `{}`)
		require.NoError(t, err, "%s does not lead to what has changed", name)
	}
}

// A result that is kept is not given for a tool that is declared otherwise, nor,
// by another name, to who may not have it.
func TestAKeptResultIsOfWhatIsBehind(t *testing.T) {
	reads := true
	mocked := manifest.Tool{Name: "m", Mode: manifest.Mock, Mock: &mock.Config{Result: json.RawMessage(`"staging"`)}, Input: json.RawMessage(`{"type":"object"}`)}
	alias, steps := led("alias", &alias.Config{Server: "m", Tool: "m"}), led("steps", nil, chain.Step{Tool: "m"})
	alias.ReadOnly, steps.ReadOnly = &reads, &reads
	names := []string{"m", "alias", "steps"}
	a, cfg := within(t, config.Config{
		Stages: config.Stages{
			Cache:  cache.Config{Tools: []string{"*"}},
			Policy: policy.Config{Rules: []policy.Rule{{Tool: "m", Caller: "http*", Do: policy.Deny}}},
		},
		Declared: []manifest.Tool{mocked, alias, steps},
	})
	for _, name := range names {
		text, err := ask(t.Context(), a, name, `{}`)
		require.NoError(t, err)
		require.Contains(t, text, "staging")
	}
	size, _ := a.currentPipeline().cache.Size()
	require.Equal(t, 1, size)
	for _, name := range names {
		tool, ok := a.Catalog.Lookup(t.Context(), name)
		require.True(t, ok)
		_, err := a.Handler(t.Context(), &call.Request{Tool: tool, Caller: call.Caller{EntryPoint: "http"}})
		require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err), name)
	}
	mocked.Mock = &mock.Config{Result: json.RawMessage(`"production"`)}
	cfg.Declared = []manifest.Tool{mocked, alias, steps}
	require.NoError(t, a.apply(t.Context(), cfg))
	for _, name := range names {
		text, err := ask(t.Context(), a, name, `{}`)
		require.NoError(t, err)
		require.Contains(t, text, "production", name)
	}
}

// What an agent may not use it may not by another name.
func TestACeilingIsOfEveryName(t *testing.T) {
	a, _ := within(t, config.Config{
		Servers:  []config.Server{{Spec: dialect.Server{Tools: dialect.Filter{Rename: map[string]string{"echo": "parrot"}}}, Config: upstream.Config{Name: "s", Era: upstream.Legacy, Serve: faultserver.Serve}}},
		Declared: []manifest.Tool{led("alias", &alias.Config{Server: "s", Tool: "echo"})},
	})
	for _, c := range []struct {
		ceiling       Ceiling
		parrot, alias bool
	}{
		{Ceiling{}, true, true},
		{Ceiling{Except: []string{"s__echo"}}, false, false},
		{Ceiling{Except: []string{"parrot"}}, false, false},
		{Ceiling{Except: []string{"alias"}}, true, false},
		{Ceiling{Only: []string{"s__*"}}, true, false},
		{Ceiling{Only: []string{"alias"}}, false, true},
	} {
		tools := a.Toolset(call.Caller{EntryPoint: "cli"}, nil, c.ceiling)
		require.NoError(t, tools.Begin())
		for name, may := range map[string]bool{"parrot": c.parrot, "alias": c.alias} {
			_, err := tools.Call(t.Context(), &llm.ToolCall{Name: name, Args: json.RawMessage(`{}`)}, nil)
			require.Equal(t, may, err == nil, "%+v %s: %v", c.ceiling, name, err)
		}
	}
}

// What a host has kept of a chain, since a question was not answered, the one after
// it goes on with, though nothing is to be approved.
func TestWhatAHostBeforeHasKept(t *testing.T) {
	state := t.TempDir()
	cfg := config.Config{
		State: state, Store: backend.Config{Dir: state}, Stages: config.Stages{Audit: audit.Config{Off: true}},
		Declared: []manifest.Tool{led("steps", nil, chain.Step{Tool: "other"})},
	}
	take := func(a *App) (*chain.StoredSteps, error) {
		tool, ok := a.Catalog.Lookup(t.Context(), "steps")
		require.True(t, ok)
		req := &call.Request{Tool: tool, Caller: call.Caller{EntryPoint: "cli"}}
		kept, err := chainJournal{a}.LoadAndLock(t.Context(), req)
		require.NoError(t, chainJournal{a}.Save(t.Context(), req, []byte(`{}`), time.Now().Add(time.Hour)))
		return kept, err
	}
	first, _ := within(t, cfg)
	kept, err := take(first)
	require.NoError(t, err)
	require.Nil(t, kept)
	first.Close()
	next, _ := within(t, cfg)
	kept, err = take(next)
	require.NoError(t, err)
	require.Equal(t, `{}`, string(kept.Value))
	kept.Release()
}

// The kept steps of a chain are for the user who made the call, and for the same person.
func TestKeptStepsBelongToAUser(t *testing.T) {
	state := t.TempDir()
	a, _ := within(t, config.Config{
		State: state, Store: backend.Config{Dir: state}, Stages: config.Stages{Audit: audit.Config{Off: true}},
		Declared: []manifest.Tool{led("steps", nil, chain.Step{Tool: "other"})},
	})
	tool, ok := a.Catalog.Lookup(t.Context(), "steps")
	require.True(t, ok)
	callOf := func(user, subject string) *call.Request {
		return &call.Request{Tool: tool, Caller: call.Caller{EntryPoint: "http", User: user, Subject: subject}}
	}
	require.NoError(t, chainJournal{a}.Save(t.Context(), callOf("alice", "issuer 1"), []byte(`{}`), time.Now().Add(time.Hour)))
	for _, other := range []*call.Request{callOf("", ""), callOf("bob", "issuer 2"), callOf("alice", "issuer 3")} {
		kept, err := chainJournal{a}.LoadAndLock(t.Context(), other)
		require.NoError(t, err)
		require.Nil(t, kept, "%+v", other.Caller)
	}
	kept, err := chainJournal{a}.LoadAndLock(t.Context(), callOf("alice", "issuer 1"))
	require.NoError(t, err)
	require.NotNil(t, kept)
}
