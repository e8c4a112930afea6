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
	// maxPrompt bounds a task's text.
	maxPrompt = 256 << 10
	// least is the time that is worth an agent's start.
	least = 2 * time.Second
)

// The members of _meta that say who calls.
const (
	hostMeta  = "io.github.toolroom-mcp/host"
	agentMeta = "io.github.toolroom-mcp/agent"
)

// caller is what a call brings besides its arguments, in _meta.
type caller struct {
	// Host is of mcp-host, which puts it into each call that it makes.
	Host *struct {
		hostDoor
		Depth  int    `json:"depth"`
		Lease  string `json:"lease"`            // of this call
		Within string `json:"within,omitempty"` // the lease of the agent that calls
	}
	// Agent is of an agent's loop, or another conversation's: what it has left.
	Agent *struct {
		Left left `json:"left"`
	}
}

// left is what a loop has left; nil: there is no bound.
type left struct {
	Turns  *int     `json:"turns"`
	Tokens *int64   `json:"tokens"`
	Cost   *float64 `json:"cost"`
	MS     *int64   `json:"ms"`
}

// loops reports whether it is a loop that calls, which waits for as long as it takes, and
// may not make the same call over and over to wait on.
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

// order makes of a call what an agent is to do. before is the agent that is to
// go on with it, or nil.
func (d *dispatcher) order(ctx context.Context, args arguments, before *agent) (order, error) {
	if len(args.Prompt) > maxPrompt {
		return order{}, toolerr.New(toolerr.InvalidParams, "prompt has %d bytes, more than %d: put long text into a file and give its path", len(args.Prompt), maxPrompt)
	}
	same := before != nil && args.Agent == "" // it goes on as what it was
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
	if from.Host == nil && bound.Depth == 0 { // a host may have tools of such names
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

// dispatchedBy notes by which host's call, and so by which agent, an order comes. It
// returns what bounds it, and the purse that it is paid from: those of that agent, else
// those of this process.
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
	if from.Host.Within != "" { // what it might have is not known any more
		return grant{}, nil, toolerr.New(toolerr.Cancelled, "the agent that makes this call has ended")
	}
	return d.own, &d.purse, nil
}

// toolsFor is what an agent may use: what this server, who dispatches, the
// kind and the call let it.
func (d *dispatcher) toolsFor(args arguments, k kind, bound grant, hosted bool) (toolSet, error) {
	most := d.ceiling
	if bound.Depth > 0 {
		// An agent's own mcp-host starts this server without a ceiling of the
		// user's: the grant has it.
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

// tellOfStrangers says which names of the user's ceiling no tool has that is here; it
// is an error if none is left.
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

// place says where the agent works, and with which program.
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
	if o.task.Agent == explore { // which uses no more, unless the configuration says otherwise
		needed = needed.within(readers())
	}
	if o.task.Host != nil {
		roots, needed = nil, nil
	}
	o.args = d.hostArgs(roots)
	o.bin, err = hostBinary(d.dir, needed)
	return err
}

// about is what the agent is told with the task.
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

// resume has the order go on where an agent ended.
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

// narrow makes the bound what the calling agent's loop says that it has left,
// where that is less.
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

// lesser is the lesser of two bounds, of which 0 and nil are none.
func lesser[N int | int64 | float64](bound N, other *N) N {
	if other == nil || bound > 0 && bound <= *other {
		return bound
	}
	return *other
}

// bounds sets what the agent may take, and takes it from who dispatches it.
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
	t.TimeoutMS, t.GraceMS = timeout.Milliseconds(), max(1, grace.Milliseconds()) // 0 is left to mcp-host
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

// A purse is what agents that one has dispatched take of its tokens and money.
// The zero value is empty.
type purse struct {
	mu             sync.Mutex
	tokens, held   int64 // used by those that have ended; held for those that have not
	cost, heldCost float64
}

// take holds an agent's share: what it asks for, or half of what is left, so
// that there is some for the next one. giveBack is told what it has used.
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

// share is how much of a bound (0: there is none) an agent gets, of which some
// is used and some held. 0: as much as it likes.
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

// turns are the permits of agents that run, of each depth its own, so that
// none waits for one that waits for it.
type turns struct {
	size int

	mu  sync.Mutex
	all map[int]chan struct{}
}

// take waits for a permit.
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
