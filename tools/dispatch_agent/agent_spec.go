package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// maxPrompt bounds a prompt, in bytes.
	maxPrompt = 256 << 10
	// minTimeout is the shortest timeout with which starting an agent makes
	// sense.
	minTimeout = 2 * time.Second
)

// newSpec validates a call's arguments, reserves the agent's budget and returns
// the agent to run. before is the agent to continue, or nil. The caller must
// call releaseBudget once. It returns LIMIT_REACHED if the caller has no budget left or
// must not dispatch agents, and the errors of the functions that check the arguments,
// such as INVALID_PARAMS.
func (d *dispatcher) newSpec(ctx context.Context, args arguments, before *agent) (agentSpec, error) {
	if len(args.Prompt) > maxPrompt {
		return agentSpec{}, toolerr.New(toolerr.InvalidParams, "prompt has %d bytes, more than %d: put long text into a file and give its path", len(args.Prompt), maxPrompt)
	}
	same := before != nil && args.Agent == "" // keep the kind and tools of before
	if same {
		args.Agent, args.Model = before.spec.kind, cmp.Or(args.Model, before.spec.task.Model)
	}
	k, err := findKind(args.Agent, d.config.kindsDir())
	if err != nil {
		return agentSpec{}, err
	}
	from := callerOf(ctx)
	o := agentSpec{kind: k.name, depth: d.ownGrant.Depth + 1}
	bound, account, err := d.resolveCaller(from, &o)
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
		o.task.Tools = o.task.Tools.intersect(before.spec.task.Tools)
	}
	if o.depth > maxDepth {
		o.task.Except = toolSet{toolName}
	}
	if o.task.Agent = k.name; k.system != "" {
		o.task.Agent, o.task.System = "", k.system+reportInstructions
	}
	if err := d.setHostCommand(ctx, &o, args); err != nil {
		return agentSpec{}, err
	}
	if o.schema, err = parseReportSchema(args.OutputSchema); err != nil {
		return agentSpec{}, err
	}
	o.task.Prompt, o.task.Model, o.task.Attached = args.Prompt+o.promptSuffix(), cmp.Or(args.Model, k.model, d.config.Model), true
	if err := o.continueFrom(before); err != nil {
		return agentSpec{}, err
	}
	if from.Agent != nil {
		if err := bound.limitTo(from.Agent.Left); err != nil {
			return agentSpec{}, err
		}
	}
	if err := d.setLimits(&o, args, bound, account); err != nil {
		return agentSpec{}, err
	}
	o.acquirePermit = func(ctx context.Context) (func(), error) { return d.permits.acquire(ctx, o.depth) }
	return o, nil
}

// resolveCaller records in o the host and the agent that made the call. It
// returns the limits that apply and the budget to charge: those of the calling agent, or
// else of this process. It returns AUTH_FAILED for a host with another state directory,
// and CANCELLED if the calling agent has ended.
func (d *dispatcher) resolveCaller(from caller, o *agentSpec) (bound grant, account *budget, err error) {
	if from.Host == nil {
		return d.ownGrant, &d.budget, nil
	}
	if !d.isHostSocket(from.Host.Socket) {
		return grant{}, nil, toolerr.New(toolerr.AuthFailed, "the host's socket is not in the state directory (%s): start both with the same --state", d.stateDir)
	}
	o.depth += max(0, from.Host.Depth)
	o.lease, o.task.Host = from.Host.Lease, &from.Host.hostEndpoint
	if o.parent = d.agents.findByLease(from.Host.Within); o.parent != nil {
		return o.parent.remainingGrant(), &o.parent.budget, nil
	}
	if from.Host.Within != "" { // the agent's limits are no longer known
		return grant{}, nil, toolerr.New(toolerr.Cancelled, "the agent that makes this call has ended")
	}
	return d.ownGrant, &d.budget, nil
}

// setHostCommand sets the directory to work in and the command line of
// mcp-host. It returns the errors of opening the directory and of findHost.
func (d *dispatcher) setHostCommand(ctx context.Context, o *agentSpec, args arguments) (err error) {
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
			o.shownDir = fsys.Display(dir.Path())
			dir.Close()
		}
	}
	needed := o.task.Tools
	if o.task.Agent == exploreKind { // explore uses only these, unless the configuration adds more
		needed = needed.intersect(readOnlyTools())
	}
	if o.task.Host != nil {
		roots, needed = nil, nil
	}
	o.hostArgs = d.hostArgs(roots)
	o.hostBin, err = findHost(d.binDir, needed)
	return err
}

// promptSuffix returns the text that is appended to the prompt: the directory
// and the schema.
func (o *agentSpec) promptSuffix() string {
	var b strings.Builder
	if o.shownDir != "" {
		fmt.Fprintf(&b, "\n\nWork in the directory %s.", o.shownDir)
	}
	if o.schema != nil {
		fmt.Fprintf(&b, "\n\nYour report must be a single JSON value that fits this JSON Schema, without other text and without a code fence:\n%s", o.schema.text)
	}
	return b.String()
}

// continueFrom continues the conversation of before, unless it is nil. It returns
// CONFLICT if that conversation was not saved, and JOB_NOT_FOUND if before belongs to
// an agent at another depth.
func (o *agentSpec) continueFrom(before *agent) error {
	if before == nil {
		return nil
	}
	if before.spec.depth != o.depth {
		return toolerr.New(toolerr.JobNotFound, "no agent %q", before.id)
	}
	if before.outcome.conversation == nil {
		return toolerr.New(toolerr.Conflict, "agent %s cannot be continued, because its conversation was not saved (%s): start a new agent, and put the needed parts of the report into its prompt", before.id, before.outcome.ending)
	}
	o.task.Conversation, o.earlierUsage = before.outcome.conversation, before.outcome.usage
	return nil
}

// setLimits sets the limits of the agent and reserves its tokens and cost from
// account. It returns LIMIT_REACHED if no time or budget is left.
func (d *dispatcher) setLimits(o *agentSpec, args arguments, bound grant, account *budget) error {
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
		if timeout < minTimeout {
			return toolerr.New(toolerr.LimitReached, "no time left for another agent: sum up what you have")
		}
	}
	o.deadline = time.Now().Add(timeout)
	t.TimeoutMS, t.GraceMS = timeout.Milliseconds(), max(1, grace.Milliseconds()) // mcp-host replaces 0 by its default
	tokens, cost, giveBack, err := account.reserve(bound, args.MaxTokens, d.config.MaxCost)
	if err != nil {
		return err
	}
	t.MaxTokens, t.MaxCost = tokens, cost
	before := o.earlierUsage
	o.releaseBudget = func(used agentUsage) { giveBack(used.tokens.total()-before.tokens.total(), used.cost-before.cost) }
	o.grant = grant{Depth: o.depth, Until: o.deadline, Turns: t.MaxTurns, Tokens: tokens, Cost: cost, Tools: t.Tools}
	return nil
}
