package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// hangTime is added to an agent's timeout and grace period; after that the
// agent is treated as hung and killed.
const hangTime = 15 * time.Second

// maxPartialText bounds the text of an agent's turns that is kept in case its
// process dies before it reports, in bytes.
const maxPartialText = 256 << 10

// usageStatus is the exit status of mcp-host for a task that it cannot carry
// out, such as an unknown kind or model.
const usageStatus = 2

// errServerEnd is the cause of cancellation when the server ends.
var errServerEnd = errors.New("the server is ending")

// agent is one sub-agent. It outlives the call that dispatched it. After it has
// ended, a client can continue it with further prompts; each prompt is a new
// agent under the same id. It is safe for concurrent use.
type agent struct {
	id      string
	spec    agentSpec
	started time.Time
	cancel  context.CancelCauseFunc // stops the agent, with a cause
	done    chan struct{}           // closed when outcome is final

	mu          sync.Mutex
	needsPermit bool          // it waits until another agent ends
	waiters     int           // number of calls that wait for this agent to end
	activity    string        // for progress messages
	usage       agentUsage    // including earlier prompts
	turn        int           // current turn of this prompt
	partialText string        // texts of the turns so far, at most maxPartialText
	processBase agentUsage    // usage when the current process started
	savedName   string        // name under which mcp-host saves the agent's steps; "": not saved
	changed     chan struct{} // closed and replaced at every change of the fields above

	budget budget // shared by the agents that this agent dispatches

	outcome outcome // valid after done is closed
}

// agentSpec describes an agent to run: its task, its limits and its origin.
type agentSpec struct {
	task         task
	kind         string        // name of the kind
	depth        int           // nesting depth of the agent; 1 if a client dispatches it
	deadline     time.Time     // without the grace period
	grant        grant         // limits for the agents that this agent dispatches
	lease        string        // the host's identifier for the run; "": not called through a host
	parent       *agent        // the agent whose call dispatched this one, if it runs in this process; otherwise nil
	hostArgs     []string      // command line arguments of mcp-host
	hostBin      string        // path of mcp-host
	shownDir     string        // directory to work in, as shown to the model; "": not given
	schema       *reportSchema // of the report; nil: any report is accepted
	earlierUsage agentUsage    // usage of the agent's earlier prompts

	acquirePermit func(ctx context.Context) (release func(), err error) // waits for a permit to run
	releaseBudget func(used agentUsage)                                 // returns the unused part of the reserved budget; called once, with the total usage
}

// outcome is the result of one run of an agent.
type outcome struct {
	report       string          // the agent's last message, or a value that matches output_schema
	ending       string          // an ending, or another text from mcp-host
	isSummary    bool            // the report is a summary written at a limit
	fault        *fault          // nil: none
	conversation json.RawMessage // for continuing the agent; nil: not possible
	model        string          // as mcp-host reports it
	usage        agentUsage
	endedAt      time.Time
	misfit       string // why the report does not match output_schema; "": it matches
}

// hasEnded reports whether the agent has ended.
func (a *agent) hasEnded() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// run runs the agent, stores its outcome and closes done.
func (a *agent) run(ctx context.Context, d *dispatcher) {
	defer close(a.done)
	o := a.runWithRepair(ctx, d)
	a.mu.Lock()
	defer a.mu.Unlock()
	o.endedAt, o.usage = time.Now(), a.currentUsage()
	a.outcome = o
}

// runWithRepair waits for a permit and runs the agent's process. It runs the
// process once more if the report does not match output_schema.
func (a *agent) runWithRepair(ctx context.Context, d *dispatcher) outcome {
	release, err := a.spec.acquirePermit(ctx)
	if err != nil {
		return outcome{ending: endingCancelled, fault: newFault(err)}
	}
	defer release()
	a.update(func() { a.needsPermit, a.activity = false, "starting" })
	o := a.runProcess(ctx, d, a.spec.task)
	if a.spec.schema == nil || o.ending != endingGoal && !o.isSummary {
		return o
	}
	if o.report, o.misfit = a.spec.schema.check(o.report); o.misfit == "" || o.conversation == nil || ctx.Err() != nil {
		return o
	}
	a.update(func() { a.activity = "formatting the report" })
	again := a.spec.task
	again.Prompt, again.Conversation = repairPrompt(o.misfit), o.conversation
	again.Tools, again.Host, again.MaxTurns = toolSet{}, nil, 1
	again.TimeoutMS = max(again.GraceMS, time.Until(a.spec.deadline).Milliseconds())
	second := a.runProcess(ctx, d, again)
	report, misfit := a.spec.schema.check(second.report)
	if second.ending != endingGoal || misfit != "" {
		return o
	}
	o.report, o.misfit, o.conversation = report, "", second.conversation
	return o
}

// runProcess runs mcp-host agent with one task until it ends.
func (a *agent) runProcess(ctx context.Context, d *dispatcher, t task) outcome {
	seal, err := a.spec.grant.sign(d.key)
	if err != nil {
		return outcome{ending: endingLost, fault: newFault(err)}
	}
	c, err := d.launcher.startHost(a.spec.hostBin, a.spec.hostArgs, append(d.environ, grantVariable+"="+seal), t)
	if err != nil {
		return outcome{ending: endingLost, fault: newFault(err)}
	}
	a.update(func() { a.processBase = a.currentUsage() })
	limit := time.Duration(t.TimeoutMS+t.GraceMS)*time.Millisecond + hangTime
	timer := time.AfterFunc(limit, func() { a.cancel(context.DeadlineExceeded) })
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(stopped)
		c.stop()
	})
	var last *event
	c.readEvents(func(e event) { //nolint:errcheck // the end of the output, however it came
		if e.Type == "ended" {
			last = &e
		}
		a.handleEvent(e)
	})
	timer.Stop()
	if !unwatch() {
		<-stopped
	}
	c.stop()
	c.stdout.Close() //nolint:errcheck // read to its end
	if last == nil {
		return a.lostOutcome(ctx, d, c)
	}
	if string(last.Conversation) == "null" {
		last.Conversation = nil
	}
	if last.Why == endingPending && last.Error == nil && len(last.Pending) > 0 {
		last.Error = a.approvalFault(last.Pending)
	}
	return outcome{
		report: strings.TrimSpace(last.Text), ending: last.Why, isSummary: last.Summed, fault: last.Error,
		conversation: last.Conversation, model: last.Model,
	}
}

// approvalFault returns the error for an agent that ended because calls need
// approval.
func (a *agent) approvalFault(all []callToApprove) *fault {
	var words []string
	for _, w := range all[:min(len(all), 10)] {
		words = append(words, fmt.Sprintf("%s (%s): %s", shorten(escapeLine(w.Tool), 64), shorten(escapeLine(w.ID), 64), shorten(escapeLine(w.Reason), 200)))
	}
	return &fault{string(toolerr.PendingApproval), fmt.Sprintf("the agent needs approval for %s. Tell the user; once it is given (mcp-host approvals), "+
		"continue the agent with agent_id %s and a prompt that says to make exactly the same call again", strings.Join(words, "; "), a.id)}
}

// lostOutcome returns the outcome of a process that ended without an "ended"
// event.
func (a *agent) lostOutcome(ctx context.Context, d *dispatcher, c *hostProcess) outcome {
	a.mu.Lock()
	o := outcome{report: strings.TrimSpace(a.partialText), ending: endingLost}
	a.mu.Unlock()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.DeadlineExceeded):
		o.ending, o.fault = endingHung, &fault{string(toolerr.Timeout), "the agent exceeded its timeout and was killed"}
	case cause != nil:
		o.ending, o.fault = endingCancelled, &fault{string(toolerr.Cancelled), cause.Error()}
	case c.cmd.ProcessState.ExitCode() == usageStatus:
		o.ending = endingRejected
		o.fault = &fault{string(toolerr.InvalidParams), c.stderr.lastLines()}
		if files := listKinds(d.config.kindsDir()); files != "" && a.spec.kind != "" {
			o.fault.Message += "; from files: " + files
		}
	default:
		o.fault = &fault{string(toolerr.ExecutionError), "the agent's process ended without an answer: " + c.describeEnd()}
		if a.savedName != "" {
			o.fault.Message += fmt.Sprintf("; its steps are saved: mcp-host agent --resume %s --state %s continues them", a.savedName, d.stateDir)
		}
	}
	return o
}

// newFault returns err as a fault, with its error code and text.
func newFault(err error) *fault { return &fault{string(toolerr.CodeOf(err)), err.Error()} }

// remainingGrant returns the limits for agents that this agent dispatches: its
// grant less its own usage. What other dispatched agents use is subtracted by
// budget.
func (a *agent) remainingGrant() grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.spec.grant
	g.Turns = max(1, g.Turns-a.turn)
	if g.Tokens > 0 {
		g.Tokens = max(1, g.Tokens-(a.usage.tokens.total()-a.spec.earlierUsage.tokens.total()))
	}
	if g.Cost > 0 {
		g.Cost = max(math.SmallestNonzeroFloat64, g.Cost-(a.usage.cost-a.spec.earlierUsage.cost))
	}
	return g
}
