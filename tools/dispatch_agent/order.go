package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// maxPrompt bounds a prompt, in bytes.
	maxPrompt = 256 << 10
	// least is the shortest timeout with which starting an agent makes
	// sense.
	least = 2 * time.Second
)

// Members of _meta that describe the caller.
const (
	hostMeta  = "io.github.toolroom-mcp/host"
	agentMeta = "io.github.toolroom-mcp/agent"
)

// caller is the information in a call's _meta about who made the call.
type caller struct {
	// Host is set by mcp-host in each call that it makes.
	Host *struct {
		hostDoor
		Depth  int    `json:"depth"`
		Lease  string `json:"lease"`            // identifies this call
		Within string `json:"within,omitempty"` // lease of the agent that makes the call
	}
	// Agent is set by an agent or another program that runs a model, with
	// its remaining limits.
	Agent *struct {
		Left left `json:"left"`
	}
}

// left holds the remaining limits of a caller; a nil field means no limit.
type left struct {
	Turns  *int     `json:"turns"`
	Tokens *int64   `json:"tokens"`
	Cost   *float64 `json:"cost"`
	MS     *int64   `json:"ms"`
}

// loops reports whether a model's loop makes the call. It waits as long as
// necessary, and should not repeat the same call to wait further.
func (c caller) loops() bool { return c.Agent != nil || c.Host != nil && c.Host.Within != "" }

func callerOf(ctx context.Context) (c caller) {
	meta := jsonrpc.MemberOf(mcpkit.RawParams(ctx), "_meta")
	for name, into := range map[string]any{hostMeta: &c.Host, agentMeta: &c.Agent} {
		if raw := jsonrpc.MemberOf(meta, name); raw != nil {
			json.Unmarshal(raw, into) //nolint:errcheck // what is not there says nothing
		}
	}
	return c
}

// order validates a call's arguments and returns the agent to run. before is
// the agent to continue, or nil.
func (d *dispatcher) order(ctx context.Context, args arguments, before *agent) (order, error) {
	if len(args.Prompt) > maxPrompt {
		return order{}, toolerr.New(toolerr.InvalidParams, "prompt has %d bytes, more than %d: put long text into a file and give its path", len(args.Prompt), maxPrompt)
	}
	same := before != nil && args.Agent == "" // keep the kind and tools of before
	if same {
		args.Agent, args.Model = before.order.kind, cmp.Or(args.Model, before.order.task.Model)
	}
	k, err := kindNamed(args.Agent, d.config.kindsDir())
	if err != nil {
		return order{}, err
	}
	from := callerOf(ctx)
	o := order{kind: k.name, depth: d.own.Depth + 1}
	bound, account, err := d.dispatchedBy(from, &o)
	if err != nil {
		return order{}, err
	}
	if o.depth-1 > maxDepth {
		return order{}, toolerr.New(toolerr.LimitReached, "nested agents cannot dispatch agents: do the rest with the other tools")
	}
	if from.Host == nil && bound.Depth == 0 { // a host may have tools with other names
		if err := d.tellOfStrangers(ctx); err != nil {
			return order{}, err
		}
	}
	if o.task.Tools, err = d.toolsFor(args, k, bound, from.Host != nil); err != nil {
		return order{}, err
	}
	if same && args.Tools == nil {
		o.task.Tools = o.task.Tools.within(before.order.task.Tools)
	}
	if o.depth > maxDepth {
		o.task.Except = toolSet{self}
	}
	if o.task.Agent = k.name; k.system != "" {
		o.task.Agent, o.task.System = "", k.system+reportWords
	}
	if err := d.place(ctx, &o, args); err != nil {
		return order{}, err
	}
	if o.schema, err = parseReportSchema(args.OutputSchema); err != nil {
		return order{}, err
	}
	o.task.Prompt, o.task.Model, o.task.Attached = args.Prompt+o.about(), cmp.Or(args.Model, k.model, d.config.Model), true
	if err := o.resume(before); err != nil {
		return order{}, err
	}
	if from.Agent != nil {
		if err := bound.narrow(from.Agent.Left); err != nil {
			return order{}, err
		}
	}
	if err := d.bounds(&o, args, bound, account); err != nil {
		return order{}, err
	}
	o.waitFor = func(ctx context.Context) (func(), error) { return d.turns.take(ctx, o.depth) }
	return o, nil
}

// dispatchedBy records in o the host and the agent that made the call. It
// returns the limits that apply and the purse to charge: those of the calling
// agent, or else of this process.
func (d *dispatcher) dispatchedBy(from caller, o *order) (bound grant, account *purse, err error) {
	if from.Host == nil {
		return d.own, &d.purse, nil
	}
	if !d.isHostSocket(from.Host.Socket) {
		return grant{}, nil, toolerr.New(toolerr.AuthFailed, "the host's socket is not in the state directory (%s): start both with the same --state", d.stateDir)
	}
	o.depth += max(0, from.Host.Depth)
	o.lease, o.task.Host = from.Host.Lease, &from.Host.hostDoor
	if o.parent = d.agents.leased(from.Host.Within); o.parent != nil {
		return o.parent.left(), &o.parent.purse, nil
	}
	if from.Host.Within != "" { // the agent's limits are no longer known
		return grant{}, nil, toolerr.New(toolerr.Cancelled, "the agent that makes this call has ended")
	}
	return d.own, &d.purse, nil
}

// toolsFor returns the tools that an agent may use: those allowed by this
// server, the dispatching agent, the kind and the call together.
func (d *dispatcher) toolsFor(args arguments, k kind, bound grant, hosted bool) (toolSet, error) {
	most := d.ceiling
	if bound.Depth > 0 {
		// An agent's own mcp-host starts this server without the user's
		// --tools; the grant has them.
		most = bound.Tools
	}
	if k.tools != nil {
		most = most.within(k.tools)
	}
	if !hosted {
		most = most.named(bundled())
	}
	if args.Tools == nil {
		return most, nil
	}
	return most.narrow(args.Tools)
}

// tellOfStrangers adds a note about names in --tools that match no bundled
// tool. It returns an error if no name matches.
func (d *dispatcher) tellOfStrangers(ctx context.Context) error {
	strange := d.ceiling.strange(bundled())
	if len(strange) == 0 {
		return nil
	}
	missing := fmt.Sprintf("--tools of this server: no tool %s; available: %s", strange, bundled())
	if len(strange) == len(d.ceiling) {
		return toolerr.New(toolerr.InvalidParams, "%s", missing)
	}
	mcpkit.Notef(ctx, "%s", missing)
	return nil
}

// place sets the directory to work in and the command line of mcp-host.
func (d *dispatcher) place(ctx context.Context, o *order, args arguments) (err error) {
	var roots []sandbox.Root
	if o.task.Host == nil || args.Path != "" {
		fs, err := d.box.FS(ctx)
		if err != nil {
			return err
		}
		roots = fs.Roots()
		if args.Path != "" {
			dir, err := fs.OpenDir(args.Path)
			if err != nil {
				return err
			}
			o.path = fs.Display(dir.Path())
			dir.Close()
		}
	}
	needed := o.task.Tools
	if o.task.Agent == explore { // explore uses only these, unless the configuration adds more
		needed = needed.within(readers())
	}
	if o.task.Host != nil {
		roots, needed = nil, nil
	}
	o.args = d.hostArgs(roots)
	o.bin, err = hostBinary(d.dir, needed)
	return err
}

// about returns the text that is appended to the prompt.
func (o *order) about() string {
	var b strings.Builder
	if o.path != "" {
		fmt.Fprintf(&b, "\n\nWork in the directory %s.", o.path)
	}
	if o.schema != nil {
		fmt.Fprintf(&b, "\n\nYour report must be a single JSON value that fits this JSON Schema, without other text and without a code fence:\n%s", o.schema.text)
	}
	return b.String()
}

// resume continues the conversation of before, unless it is nil. It returns an
// error if that conversation was not saved.
func (o *order) resume(before *agent) error {
	if before == nil {
		return nil
	}
	if before.order.depth != o.depth {
		return toolerr.New(toolerr.JobNotFound, "no agent %q", before.id)
	}
	if before.outcome.conversation == nil {
		return toolerr.New(toolerr.Conflict, "agent %s cannot be continued, because its conversation was not saved (%s): start a new agent, and put the needed parts of the report into its prompt", before.id, before.outcome.why)
	}
	o.task.Conversation, o.before = before.outcome.conversation, before.outcome.used
	return nil
}

// narrow lowers the limits to the remaining limits of the caller. It returns an
// error if one of them is used up.
func (g *grant) narrow(left left) error {
	if left.Turns != nil && *left.Turns < 1 || left.Tokens != nil && *left.Tokens < 1 || left.Cost != nil && *left.Cost <= 0 {
		return toolerr.New(toolerr.LimitReached, "no budget left for another agent: sum up what you have")
	}
	g.Turns = lesser(g.Turns, left.Turns)
	g.Tokens = lesser(g.Tokens, left.Tokens)
	g.Cost = lesser(g.Cost, left.Cost)
	if left.MS != nil {
		until := time.Now().Add(time.Duration(min(*left.MS, mostTimeout.Milliseconds())) * time.Millisecond)
		if g.Until.IsZero() || until.Before(g.Until) {
			g.Until = until
		}
	}
	return nil
}

// lesser returns the lower of two limits; 0 and nil mean no limit.
func lesser[N int | int64 | float64](bound N, other *N) N {
	if other == nil || bound > 0 && bound <= *other {
		return bound
	}
	return *other
}

// bounds sets the limits of the agent and reserves its tokens and cost from
// account.
func (d *dispatcher) bounds(o *order, args arguments, bound grant, account *purse) error {
	t := &o.task
	t.MaxTurns = cmp.Or(args.MaxTurns, d.config.MaxTurns)
	if bound.Turns > 0 {
		t.MaxTurns = min(t.MaxTurns, bound.Turns)
	}
	timeout, grace := d.config.Timeout, d.config.Grace
	if args.Timeout > 0 {
		timeout = time.Duration(args.Timeout) * time.Second
	}
	if !bound.Until.IsZero() {
		left := time.Until(bound.Until)
		grace = min(grace, left/4)
		timeout = min(timeout, left-grace)
		if timeout < least {
			return toolerr.New(toolerr.LimitReached, "no time left for another agent: sum up what you have")
		}
	}
	o.until = time.Now().Add(timeout)
	t.TimeoutMS, t.GraceMS = timeout.Milliseconds(), max(1, grace.Milliseconds()) // mcp-host replaces 0 by its default
	tokens, cost, giveBack, err := account.take(bound, args.MaxTokens, d.config.MaxCost)
	if err != nil {
		return err
	}
	t.MaxTokens, t.MaxCost = tokens, cost
	before := o.before
	o.giveBack = func(used tally) { giveBack(used.usage.sum()-before.usage.sum(), used.cost-before.cost) }
	o.grant = grant{Depth: o.depth, Until: o.until, Turns: t.MaxTurns, Tokens: tokens, Cost: cost, Tools: t.Tools}
	return nil
}

// purse accounts for the tokens and cost of the agents that one agent, or the
// client, has dispatched. The zero value is ready to use. It is safe for
// concurrent use.
type purse struct {
	mu             sync.Mutex
	tokens, held   int64 // used by ended agents; held (reserved) for running agents
	cost, heldCost float64
}

// take reserves tokens and cost for an agent: the requested amounts, or half of
// the rest, so that some is left for the next agent. The returned function
// replaces the reservation by the actual usage.
func (p *purse) take(bound grant, tokens int64, cost float64) (int64, float64, func(int64, float64), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tokens, err := share(tokens, bound.Tokens, p.tokens, p.held, "tokens")
	if err == nil {
		cost, err = share(cost, bound.Cost, p.cost, p.heldCost, "money")
	}
	if err != nil {
		return 0, 0, nil, err
	}
	p.held += tokens
	p.heldCost += cost
	return tokens, cost, func(usedTokens int64, usedCost float64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held -= tokens
		p.heldCost -= cost
		p.tokens += usedTokens
		p.cost += usedCost
	}, nil
}

// share returns how much of a limit to reserve. bound 0 means no limit, asked 0
// means half of the rest. The result 0 means no limit.
func share[N int64 | float64](asked, bound, used, held N, what string) (N, error) {
	if bound <= 0 {
		return asked, nil
	}
	rest := bound - used - held
	if rest <= 0 {
		return 0, toolerr.New(toolerr.LimitReached, "no %s left for another agent: sum up what you have", what)
	}
	if asked <= 0 {
		asked = rest - rest/2
	}
	return min(asked, rest), nil
}

// turns limits the agents that run at once. Each depth has its own permits, so
// that agents never wait for an agent that waits for them.
type turns struct {
	size int

	mu  sync.Mutex
	all map[int]chan struct{}
}

// take waits for a permit. It returns an error if ctx is cancelled first.
func (t *turns) take(ctx context.Context, depth int) (release func(), err error) {
	t.mu.Lock()
	if t.all == nil {
		t.all = map[int]chan struct{}{}
	}
	permits := t.all[depth]
	if permits == nil {
		permits = make(chan struct{}, t.size)
		t.all[depth] = permits
	}
	t.mu.Unlock()
	select {
	case permits <- struct{}{}:
		return func() { <-permits }, nil
	case <-ctx.Done():
		return nil, toolerr.New(toolerr.Cancelled, "cancelled before the agent started: %w", context.Cause(ctx))
	}
}
