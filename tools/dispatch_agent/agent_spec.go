package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
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

// newSpec validates a call's arguments and returns the agent to run. before is
// the agent to continue, or nil.
func (d *dispatcher) newSpec(ctx context.Context, args arguments, before *agent) (agentSpec, error) {
	if len(args.Prompt) > maxPrompt {
		return agentSpec{}, toolerr.New(toolerr.InvalidParams, "prompt has %d bytes, more than %d: put long text into a file and give its path", len(args.Prompt), maxPrompt)
	}
	same := before != nil && args.Agent == "" // keep the kind and tools of before
	if same {
		args.Agent, args.Model = before.spec.kind, cmp.Or(args.Model, before.spec.task.Model)
	}
	k, err := kindNamed(args.Agent, d.config.kindsDir())
	if err != nil {
		return agentSpec{}, err
	}
	from := callerOf(ctx)
	o := agentSpec{kind: k.name, depth: d.own.Depth + 1}
	bound, account, err := d.dispatchedBy(from, &o)
	if err != nil {
		return agentSpec{}, err
	}
	if o.depth-1 > maxDepth {
		return agentSpec{}, toolerr.New(toolerr.LimitReached, "nested agents cannot dispatch agents: do the rest with the other tools")
	}
	if from.Host == nil && bound.Depth == 0 { // a host may have tools with other names
		if err := d.noteUnknownTools(ctx); err != nil {
			return agentSpec{}, err
		}
	}
	if o.task.Tools, err = d.toolsFor(args, k, bound, from.Host != nil); err != nil {
		return agentSpec{}, err
	}
	if same && args.Tools == nil {
		o.task.Tools = o.task.Tools.within(before.spec.task.Tools)
	}
	if o.depth > maxDepth {
		o.task.Except = toolSet{self}
	}
	if o.task.Agent = k.name; k.system != "" {
		o.task.Agent, o.task.System = "", k.system+reportWords
	}
	if err := d.place(ctx, &o, args); err != nil {
		return agentSpec{}, err
	}
	if o.schema, err = parseReportSchema(args.OutputSchema); err != nil {
		return agentSpec{}, err
	}
	o.task.Prompt, o.task.Model, o.task.Attached = args.Prompt+o.about(), cmp.Or(args.Model, k.model, d.config.Model), true
	if err := o.resume(before); err != nil {
		return agentSpec{}, err
	}
	if from.Agent != nil {
		if err := bound.narrow(from.Agent.Left); err != nil {
			return agentSpec{}, err
		}
	}
	if err := d.bounds(&o, args, bound, account); err != nil {
		return agentSpec{}, err
	}
	o.waitFor = func(ctx context.Context) (func(), error) { return d.permits.take(ctx, o.depth) }
	return o, nil
}

// dispatchedBy records in o the host and the agent that made the call. It
// returns the limits that apply and the budget to charge: those of the calling
// agent, or else of this process.
func (d *dispatcher) dispatchedBy(from caller, o *agentSpec) (bound grant, account *budget, err error) {
	if from.Host == nil {
		return d.own, &d.budget, nil
	}
	if !d.isHostSocket(from.Host.Socket) {
		return grant{}, nil, toolerr.New(toolerr.AuthFailed, "the host's socket is not in the state directory (%s): start both with the same --state", d.stateDir)
	}
	o.depth += max(0, from.Host.Depth)
	o.lease, o.task.Host = from.Host.Lease, &from.Host.hostDoor
	if o.parent = d.agents.leased(from.Host.Within); o.parent != nil {
		return o.parent.left(), &o.parent.budget, nil
	}
	if from.Host.Within != "" { // the agent's limits are no longer known
		return grant{}, nil, toolerr.New(toolerr.Cancelled, "the agent that makes this call has ended")
	}
	return d.own, &d.budget, nil
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

// noteUnknownTools adds a note about names in --tools that match no bundled
// tool. It returns an error if no name matches.
func (d *dispatcher) noteUnknownTools(ctx context.Context) error {
	unknown := d.ceiling.unknown(bundled())
	if len(unknown) == 0 {
		return nil
	}
	missing := fmt.Sprintf("--tools of this server: no tool %s; available: %s", unknown, bundled())
	if len(unknown) == len(d.ceiling) {
		return toolerr.New(toolerr.InvalidParams, "%s", missing)
	}
	mcpkit.Notef(ctx, "%s", missing)
	return nil
}

// place sets the directory to work in and the command line of mcp-host.
func (d *dispatcher) place(ctx context.Context, o *agentSpec, args arguments) (err error) {
	var roots []sandbox.Root
	if o.task.Host == nil || args.Path != "" {
		fsys, err := d.box.FS(ctx)
		if err != nil {
			return err
		}
		roots = fsys.Roots()
		if args.Path != "" {
			dir, err := fsys.OpenDir(args.Path)
			if err != nil {
				return err
			}
			o.path = fsys.Display(dir.Path())
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
func (o *agentSpec) about() string {
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
func (o *agentSpec) resume(before *agent) error {
	if before == nil {
		return nil
	}
	if before.spec.depth != o.depth {
		return toolerr.New(toolerr.JobNotFound, "no agent %q", before.id)
	}
	if before.outcome.conversation == nil {
		return toolerr.New(toolerr.Conflict, "agent %s cannot be continued, because its conversation was not saved (%s): start a new agent, and put the needed parts of the report into its prompt", before.id, before.outcome.why)
	}
	o.task.Conversation, o.before = before.outcome.conversation, before.outcome.used
	return nil
}

// bounds sets the limits of the agent and reserves its tokens and cost from
// account.
func (d *dispatcher) bounds(o *agentSpec, args arguments, bound grant, account *budget) error {
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
