package core

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog/toolsearch"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Ceiling is which tools may be used at most. Patterns are of served names, with *,
// as those of a profile: one that is renamed goes by both names, and what leads to a
// tool that is excepted is so, too.
type Ceiling struct {
	Only   []string // nil: all; empty: none
	Except []string // wins over Only
}

func (c Ceiling) has(names, also []string) bool {
	match := func(patterns, names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return catalog.MatchesAny(patterns, name) })
	}
	return (c.Only == nil || match(c.Only, names)) && !match(c.Except, names) && !match(c.Except, also)
}

// A Toolset is what an agent may call of the host: the tools of a caller's profile
// below all of its ceilings, as the catalogue, the filter and the policy are at each
// round, and in one turn of the policy's. It implements agent.Tools. Calls go through
// all stages, so that what the policy says holds for each of them, whatever was
// listed. End it.
type Toolset struct {
	app      *App
	turn     *policy.Turn
	ceilings []Ceiling
	caller   call.Caller
	ask      call.Ask
	tokens   atomic.Int64 // for progress
}

// Toolset begins a turn of a caller's. ask, unless nil, asks the caller's client what
// servers ask, approvals among it; which of that it can do, caller.Capabilities say.
func (a *App) Toolset(caller call.Caller, ask call.Ask, ceilings ...Ceiling) *Toolset {
	t := &Toolset{app: a, ceilings: slices.Clone(ceilings), ask: ask}
	if within := caller.Tools; within != nil || len(ceilings) > 0 {
		caller.Tools = func(name string) bool { return (within == nil || within(name)) && t.below(name) }
	}
	t.turn = a.Policy().Turn(caller)
	t.caller = t.turn.Caller()
	return t
}

// Strangers returns the patterns that no tool of the catalogue goes by.
func (a *App) Strangers(ctx context.Context, patterns []string) []string {
	if len(patterns) == 0 {
		return nil
	}
	all, now := a.Catalog.Snapshot(ctx).Tools(), a.present.Load()
	return slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool {
		return slices.ContainsFunc(all, func(t *call.Tool) bool {
			names, _ := now.names(t.Name)
			return Ceiling{Only: []string{pattern}}.has(names, nil)
		})
	})
}

// Begin begins a round.
func (t *Toolset) Begin() error { return t.turn.Round() }

// End ends the turn. Its error says that the policy required a call, and none was
// made.
func (t *Toolset) End() error { return t.turn.End() }

// view is what the caller is offered.
func (t *Toolset) view() (*toolsearch.Offer, error) {
	v, ok := t.app.present.Load().views[t.caller.Profile]
	if !ok {
		return nil, toolerr.New(toolerr.NotFound, "profile %s no longer exists", t.caller.Profile)
	}
	return v, nil
}

// has reports whether a tool may be called as far as ceilings go: these, and those of
// the conversation that this one is part of.
func (t *Toolset) has(name string) bool { return t.caller.Tools == nil || t.caller.Tools(name) }

func (t *Toolset) below(name string) bool {
	names, also := t.app.present.Load().names(name)
	return !slices.ContainsFunc(t.ceilings, func(c Ceiling) bool { return !c.has(names, also) })
}

// List returns the definitions of the tools that may be called.
func (t *Toolset) List(ctx context.Context, asked *llm.Choice) ([]llm.Tool, *llm.Choice, error) {
	choice, err := t.choice(asked)
	if err != nil {
		return nil, nil, err
	}
	v, err := t.view()
	if err != nil {
		return nil, nil, err
	}
	all := []llm.Tool{}
	rules := t.app.way().cfg.Policy
	for _, tool := range v.View().Snapshot(ctx).Tools() {
		if !t.has(tool.Name) || !rules.Offers(tool) {
			continue
		}
		definition, err := llm.ParseTool(tool.Definition)
		if err == nil {
			all = append(all, definition)
		}
	}
	return all, choice, ctx.Err()
}

// choice is what was asked for as far as the policy leaves it.
func (t *Toolset) choice(asked *llm.Choice) (*llm.Choice, error) {
	word := ""
	switch {
	case asked == nil:
	case asked.Mode == llm.Required && len(asked.Names) == 1:
		word = asked.Names[0]
	case asked.Mode != "":
		word = string(asked.Mode)
	}
	chosen, err := t.turn.Choice(word)
	if err != nil {
		return nil, err
	}
	switch chosen {
	case policy.ChoiceNone, policy.ChoiceRequired, policy.ChoiceAuto:
		if asked == nil && chosen == policy.ChoiceAuto {
			return nil, nil
		}
		choice := &llm.Choice{Mode: llm.Mode(chosen)}
		if asked != nil && chosen != policy.ChoiceNone && len(asked.Names) > 1 { // these alone, in every round
			choice.Names = asked.Names
		} else if asked != nil && asked.Mode == llm.Auto {
			choice.Names = asked.Names
		}
		return choice, nil
	}
	return &llm.Choice{Mode: llm.Required, Names: []string{chosen}}, nil
}

// Call makes one call.
func (t *Toolset) Call(ctx context.Context, c *llm.ToolCall, progress func(text string)) (*call.Result, error) {
	missing := toolerr.New(toolerr.ToolNotFound, "no tool %q; call one of the offered tools", c.Name)
	if !t.has(c.Name) {
		return nil, missing
	}
	v, err := t.view()
	if err != nil {
		return nil, err
	}
	tool, ok := v.Lookup(ctx, c.Name)
	if !ok {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, missing
	}
	args := c.Args
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	params := append(append(jsonrpc.AppendString([]byte(`{"name":`), tool.Name), `,"arguments":`...), args...)
	req := &call.Request{Tool: tool, Caller: t.caller, Ask: t.ask}
	meta := map[string]any{}
	if progress != nil {
		meta["progressToken"] = "agent-" + strconv.FormatInt(t.tokens.Add(1), 10)
		req.OnNotify = func(method string, params json.RawMessage) { progressed(method, params, progress) }
	}
	if left, ok := agent.LeftOf(ctx); ok && slices.Contains(t.app.way().cfg.Limit.Nested, tool.Server) {
		meta[leftMeta] = map[string]any{"left": left}
	}
	if len(meta) > 0 {
		raw, err := jsonrpc.Marshal(meta)
		if err != nil {
			return nil, err
		}
		params = append(append(params, `,"_meta":`...), raw...)
	}
	req.Params = append(params, '}')
	res, err := t.app.Handler(ctx, req)
	if err == nil && t.app.Config.Joined {
		if err = waiting(res); err != nil {
			return nil, err
		}
	}
	return res, err
}

// leftMeta is the member of _meta that tells a server that runs agents what the
// calling agent has left: {"left":agent.Left}.
const leftMeta = "io.github.toolroom-mcp/agent"

// progressed hands on what a tool says of how far it is.
func progressed(method string, params json.RawMessage, progress func(string)) {
	if method != "notifications/progress" {
		return
	}
	var p struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(params, &p) == nil && p.Message != "" {
		progress(p.Message)
	}
}
