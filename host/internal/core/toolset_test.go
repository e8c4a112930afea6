package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	loop "github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// stubborn is a model that calls all tools of names in every one of its turns, whatever
// it is offered, and keeps what that was.
type stubborn struct {
	who   string
	names []string
	turns int

	offered [][]string
}

func (s *stubborn) Info() provider.Info { return provider.Info{Name: "stubborn"} }

func (s *stubborn) Ask(_ context.Context, r *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
	offered := []string{}
	for _, t := range r.Tools {
		offered = append(offered, t.Name)
	}
	s.offered = append(s.offered, offered)
	answer := &llm.Response{Parts: []llm.Part{{Type: llm.TextPart, Text: "so"}}}
	for _, name := range s.names {
		if len(s.offered) > s.turns {
			break
		}
		args := fmt.Sprintf(`{"who":%q,"n":%d}`, s.who, len(s.offered))
		answer.Parts = append(answer.Parts, llm.Part{Type: llm.CallPart, ToolCall: &llm.ToolCall{Name: name, Args: json.RawMessage(args)}})
	}
	return answer, nil
}

// ledger is who called what.
type ledger struct {
	mu    sync.Mutex
	calls map[string][]string
}

func (l *ledger) tool(t *testing.T, name string) *mcpkit.Tool {
	t.Helper()
	tool, err := mcpkit.NewTool(mcpkit.Def{Name: name, Description: name}, func(_ context.Context, args map[string]any) (*mcpkit.Result, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		who := fmt.Sprint(args["who"])
		l.calls[who] = append(l.calls[who], name)
		return &mcpkit.Result{Text: "ok"}, nil
	})
	require.NoError(t, err)
	return tool
}

// made is what somebody called, each once.
func (l *ledger) made(who string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := slices.Clone(l.calls[who])
	slices.Sort(made)
	return slices.Compact(made)
}

func some(r *rand.Rand, names []string) []string {
	few := slices.DeleteFunc(slices.Clone(names), func(string) bool { return r.IntN(2) == 0 })
	if r.IntN(4) == 0 {
		few = append(few, "*"+names[r.IntN(len(names))])
	}
	return few
}

// ceiling is what may be called at most: "all" by chance, so that something is.
func ceiling(r *rand.Rand, names []string) core.Ceiling {
	var c core.Ceiling
	if r.IntN(3) > 0 {
		c.Only = append([]string{"dispatch_agent"}, some(r, names)...)
	}
	if r.IntN(3) == 0 {
		c.Except = some(r, names)
	}
	return c
}

func within(c core.Ceiling, name string) bool {
	return (c.Only == nil || catalog.MatchesAny(c.Only, name)) && !catalog.MatchesAny(c.Except, name)
}

// A tool filter and a policy hold in every round, also after calls of tools, and also
// for the agents that these start: whatever a model asks for, nothing else is called,
// and what may be called is.
func TestFilterAndPolicyHoldInEveryRound(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	subs := 0
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 3))
		outer, inner := []core.Ceiling{ceiling(r, names), ceiling(r, names)}, ceiling(r, names)
		rules := policy.Config{MaxIdenticalCalls: -1}
		if r.IntN(2) == 0 {
			rules.Block = some(r, names)
		}
		for _, name := range some(r, names) {
			rules.Rules = append(rules.Rules, policy.Rule{Tool: name, Do: policy.Deny})
		}
		book := &ledger{calls: map[string][]string{}}
		var below *stubborn
		cfg := config.Config{State: t.TempDir(), Stages: config.Stages{Policy: rules}}
		cfg.Profiles = []catalog.Profile{{Name: "few", Block: some(r, names)}}
		cfg.Models = aModel()
		cfg.Servers = []config.Server{dispatching(func(params json.RawMessage) string {
			var p struct {
				Meta struct {
					Host struct{ Socket, Token string } `json:"io.github.toolroom-mcp/host"`
				} `json:"_meta"`
			}
			if err := json.Unmarshal(params, &p); err != nil || p.Meta.Host.Token == "" {
				return "no host"
			}
			joined, err := core.Open(core.JoinedConfig(cfg, p.Meta.Host.Socket, p.Meta.Host.Token))
			if err != nil {
				return err.Error()
			}
			defer joined.Close()
			below = &stubborn{who: "sub", names: names, turns: 2}
			set := joined.Toolset(call.Caller{EntryPoint: "cli"}, nil, inner)
			defer set.End() //nolint:errcheck // it requires nothing
			loop.Run(context.Background(), loop.Config{Model: below, Tools: set}, []llm.Message{{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: "x"}}}})
			return "done"
		})}
		a, err := core.Open(cfg)
		require.NoError(t, err)
		var all []*mcpkit.Tool
		for _, name := range names {
			all = append(all, book.tool(t, name))
		}
		require.NoError(t, a.Register(all...))
		require.NoError(t, a.Listen("test"))

		profile := []string{"", "few"}[r.IntN(2)]
		above := &stubborn{who: "main", names: append([]string{"dispatch_agent"}, names...), turns: 3}
		set := a.Toolset(call.Caller{EntryPoint: "cli", Profile: profile}, nil, outer...)
		o := loop.Run(t.Context(), loop.Config{Model: above, Tools: set, Bounds: loop.Bounds{Identical: -1}}, []llm.Message{{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: "x"}}}})
		require.NoError(t, set.End())
		require.Equal(t, loop.EndGoal, o.Ending, "%v", o.Err)

		shown := func(name string) bool {
			return within(outer[0], name) && within(outer[1], name) && !catalog.MatchesAny(rules.Block, name) &&
				(profile == "" || !catalog.MatchesAny(cfg.Profiles[0].Block, name))
		}
		allowed := func(name string) bool {
			return shown(name) && !slices.ContainsFunc(rules.Rules, func(rule policy.Rule) bool { return catalog.MatchesAny([]string{rule.Tool}, name) })
		}
		var want, offer, wantBelow []string
		for _, name := range names {
			if shown(name) {
				offer = append(offer, name)
			}
			if allowed(name) {
				want = append(want, name)
			}
			if allowed(name) && within(inner, name) {
				wantBelow = append(wantBelow, name)
			}
		}
		require.ElementsMatch(t, want, book.made("main"), "seed %d", seed)
		require.Len(t, above.offered, 4)
		for _, offered := range above.offered {
			require.ElementsMatch(t, offer, slices.DeleteFunc(offered, func(name string) bool { return name == "dispatch_agent" }), "seed %d", seed)
		}
		if below != nil {
			subs++
			require.ElementsMatch(t, wantBelow, book.made("sub"), "seed %d", seed)
			for _, offered := range below.offered {
				for _, name := range offered {
					require.True(t, within(inner, name) && shown(name) || name == "dispatch_agent" || catalog.MatchesAny(rules.Block, name), "seed %d: %s", seed, name)
				}
			}
		}
		a.Close()
	}
	require.Greater(t, subs, 10)
}

// What the policy says of choices holds after calls, too.
func TestChoicesOfTools(t *testing.T) {
	choice := func(own string, asked *llm.Choice) (*llm.Choice, error) {
		a, err := core.Open(config.Config{Stages: config.Stages{Policy: policy.Config{ToolChoice: own}}})
		require.NoError(t, err)
		defer a.Close()
		set := a.Toolset(call.Caller{EntryPoint: "http"}, nil)
		_, got, err := set.List(t.Context(), asked)
		return got, err
	}
	required := func(names ...string) *llm.Choice { return &llm.Choice{Mode: llm.ChoiceRequired, ToolNames: names} }
	for _, c := range []struct {
		own         string
		asked, want *llm.Choice
	}{
		{"", nil, nil},
		{"", required("ls"), required("ls")},
		{"", required("ls", "cat"), required("ls", "cat")},
		{"", &llm.Choice{Mode: llm.ChoiceAuto, ToolNames: []string{"ls"}}, &llm.Choice{Mode: llm.ChoiceAuto, ToolNames: []string{"ls"}}},
		{"none", required(), &llm.Choice{Mode: llm.ChoiceNone}},
		{"required", nil, required()},
		{"ls", nil, required("ls")},
	} {
		got, err := choice(c.own, c.asked)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c)
	}
	_, err := choice("ls", required("cat"))
	require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))
}

// Entries of a journal may be longer than a record; what a killed host wrote in part is
// left out.
func TestAnAgentsJournal(t *testing.T) {
	state := t.TempDir()
	a, err := core.Open(config.Config{State: state, Store: backend.Config{Dir: state}})
	require.NoError(t, err)
	defer a.Close()
	j, err := a.Journal("a1")
	require.NoError(t, err)
	none, err := j.Read(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)
	long := json.RawMessage(`"` + strings.Repeat("x", 2_500_000) + `"`)
	for _, entry := range []json.RawMessage{json.RawMessage(`{"n":1}`), long, json.RawMessage(`{"n":2}`)} {
		require.NoError(t, j.Append(t.Context(), entry))
	}
	all, err := j.Read(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.True(t, bytes.Equal(long, all[1]))
	require.Equal(t, `{"n":2}`, string(all[2]))
	_, err = a.Journal("../x")
	require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err))
}
