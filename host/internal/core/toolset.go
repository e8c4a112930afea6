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

// A Ceiling bounds the tools that an agent may use. Patterns match served names, with
// *, as in a profile. A renamed tool matches by both names. A tool that calls an
// excluded tool is excluded too.
type Ceiling struct {
	Only   []string // nil: all tools; empty: none
	Except []string // takes precedence over Only
}

// permits reports whether a tool is within the ceiling. names are its served names.
// targetNames are the served names of an alias's target: they may be missing in Only, but
// must not match Except.
func (c Ceiling) permits(names, targetNames []string) bool {
	match := func(patterns, names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return catalog.MatchesAny(patterns, name) })
	}
	return (c.Only == nil || match(c.Only, names)) && !match(c.Except, names) && !match(c.Except, targetNames)
}

// A Toolset is the set of tools that an agent may call in one turn of a conversation:
// the tools of the caller's profile within all ceilings. It follows changes of the
// catalog, the filters and the policy in each round. It implements agent.Tools. Calls
// pass all stages, so the policy applies to each call, regardless of the list. The
// caller must call End.
type Toolset struct {
	app      *App
	turn     *policy.Turn
	ceilings []Ceiling
	caller   call.Caller
	ask      call.Ask
	tokens   atomic.Int64 // source of progress tokens
}

// Toolset begins a turn of a caller and returns its tools. ask sends questions of servers
// and approvals to the caller's client; caller.Capabilities says which ones the client
// supports. nil: there is nobody to ask.
func (a *App) Toolset(caller call.Caller, ask call.Ask, ceilings ...Ceiling) *Toolset {
	t := &Toolset{app: a, ceilings: slices.Clone(ceilings), ask: ask}
	if within := caller.Tools; within != nil || len(ceilings) > 0 {
		caller.Tools = func(name string) bool { return (within == nil || within(name)) && t.isWithinCeilings(name) }
	}
	t.turn = a.Policy().Turn(caller)
	t.caller = t.turn.Caller()
	return t
}

// UnmatchedPatterns returns the patterns that match no tool of the catalog. It waits until
// every server was listed once, or ctx ends.
func (a *App) UnmatchedPatterns(ctx context.Context, patterns []string) []string {
	if len(patterns) == 0 {
		return nil
	}
	all, now := a.Catalog.Snapshot(ctx).Tools(), a.snapshot.Load()
	return slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool {
		return slices.ContainsFunc(all, func(t *call.Tool) bool {
			names, _ := now.servedNames(t.Name)
			return Ceiling{Only: []string{pattern}}.permits(names, nil)
		})
	})
}

// Begin begins a round: one request to the model and its calls. It returns LIMIT_REACHED
// after the policy's last permitted round.
func (t *Toolset) Begin() error { return t.turn.BeginRound() }

// End ends the turn. It returns an error if the policy requires a call that was not
// made.
func (t *Toolset) End() error { return t.turn.End() }

// profileView returns the catalog view of the caller's profile. It returns NOT_FOUND if a
// reload of the configuration removed the profile.
func (t *Toolset) profileView() (*toolsearch.List, error) {
	v, ok := t.app.snapshot.Load().views[t.caller.Profile]
	if !ok {
		return nil, toolerr.New(toolerr.NotFound, "profile %s no longer exists", t.caller.Profile)
	}
	return v, nil
}

// permits reports whether all ceilings permit a tool: those of this turn and those of the
// conversation that started this agent.
func (t *Toolset) permits(name string) bool { return t.caller.Tools == nil || t.caller.Tools(name) }

// isWithinCeilings reports whether the ceilings of this turn permit the tool with a served
// name.
func (t *Toolset) isWithinCeilings(name string) bool {
	names, also := t.app.snapshot.Load().servedNames(name)
	return !slices.ContainsFunc(t.ceilings, func(c Ceiling) bool { return !c.permits(names, also) })
}

// List returns the definitions of the tools that the model may call now, and the tool
// choice to send: the requested one as far as the policy permits. It waits until every
// server was listed once. It returns POLICY_DENIED if the policy forbids the requested
// choice, and the error of ctx if that has ended.
func (t *Toolset) List(ctx context.Context, requested *llm.Choice) ([]llm.Tool, *llm.Choice, error) {
	choice, err := t.restrictChoice(requested)
	if err != nil {
		return nil, nil, err
	}
	v, err := t.profileView()
	if err != nil {
		return nil, nil, err
	}
	all := []llm.Tool{}
	rules := t.app.currentPipeline().cfg.Policy
	for _, tool := range v.View().Snapshot(ctx).Tools() {
		if !t.permits(tool.Name) || !rules.Offers(tool) {
			continue
		}
		definition, err := llm.ParseTool(tool.Definition)
		if err == nil {
			all = append(all, definition)
		}
	}
	return all, choice, ctx.Err()
}

// restrictChoice restricts a requested tool choice to the one that the policy permits.
func (t *Toolset) restrictChoice(requested *llm.Choice) (*llm.Choice, error) {
	word := ""
	switch {
	case requested == nil:
	case requested.Mode == llm.ChoiceRequired && len(requested.ToolNames) == 1:
		word = requested.ToolNames[0]
	case requested.Mode != "":
		word = string(requested.Mode)
	}
	chosen, err := t.turn.Choice(word)
	if err != nil {
		return nil, err
	}
	switch chosen {
	case policy.ChoiceNone, policy.ChoiceRequired, policy.ChoiceAuto:
		if requested == nil && chosen == policy.ChoiceAuto {
			return nil, nil
		}
		choice := &llm.Choice{Mode: llm.ChoiceMode(chosen)}
		if requested != nil && chosen != policy.ChoiceNone && len(requested.ToolNames) > 1 { // only these, in every round
			choice.ToolNames = requested.ToolNames
		} else if requested != nil && requested.Mode == llm.ChoiceAuto {
			choice.ToolNames = requested.ToolNames
		}
		return choice, nil
	}
	return &llm.Choice{Mode: llm.ChoiceRequired, ToolNames: []string{chosen}}, nil
}

// Call makes a model's call through all stages. progress, if not nil, gets the texts of
// progress notifications. A denied or failed call is an error.
func (t *Toolset) Call(ctx context.Context, c *llm.ToolCall, progress func(text string)) (*call.Result, error) {
	missing := toolerr.New(toolerr.ToolNotFound, "no tool %q; call one of the offered tools", c.Name)
	if !t.permits(c.Name) {
		return nil, missing
	}
	v, err := t.profileView()
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
		req.OnNotify = func(method string, params json.RawMessage) { reportProgress(method, params, progress) }
	}
	if left, ok := agent.RemainingBudgetOf(ctx); ok && slices.Contains(t.app.currentPipeline().cfg.Limit.Nested, tool.Server) {
		meta[budgetMeta] = map[string]any{"left": left}
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
		if err = pendingError(res); err != nil {
			return nil, err
		}
	}
	return res, err
}

// budgetMeta is the member of _meta with the remaining budget of the calling agent,
// for a server that runs agents: {"left":agent.RemainingBudget}.
const budgetMeta = "io.github.toolroom-mcp/agent"

// reportProgress calls progress with the text of a progress notification; it ignores other
// notifications.
func reportProgress(method string, params json.RawMessage, progress func(string)) {
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
