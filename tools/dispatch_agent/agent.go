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

// slack is added to an agent's timeout and grace period; after that the agent
// is treated as hung and killed.
const slack = 15 * time.Second

// maxFound bounds the text of an agent's turns that is kept in case its process
// dies before it reports, in bytes.
const maxFound = 256 << 10

// usageStatus is the exit status of mcp-host for a task that it cannot carry
// out, such as an unknown kind or model.
const usageStatus = 2

// errStop is the cause of cancellation when the server shuts down.
var errStop = errors.New("the server is ending")

// agent is one sub-agent. It outlives the call that dispatched it, and a client
// can send it further prompts after it has ended.
type agent struct {
	id     string
	spec   agentSpec
	begun  time.Time
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when outcome is final

	mu      sync.Mutex
	waiting bool          // waiting for a permit, until another agent ends
	waiters int           // number of calls that wait for this agent to end
	now     string        // current activity, for progress messages
	used    tally         // including earlier prompts
	turn    int           // current turn of this prompt
	found   string        // texts of the turns so far, at most maxFound bytes
	base    tally         // value of used when the process started
	kept    string        // name under which mcp-host saves the agent's steps; "": not saved
	changed chan struct{} // closed and replaced on every change of the fields above

	budget budget // shared by the agents that this agent dispatches

	outcome outcome
}

// agentSpec describes an agent to run: its task, its limits and its origin.
type agentSpec struct {
	task   task
	kind   string
	depth  int       // nesting depth of the agent; 1 if a client dispatches it
	until  time.Time // deadline, without the grace period
	grant  grant     // limits for the agents that this agent dispatches
	lease  string    // the host's identifier for the run; "": not called through a host
	parent *agent    // the agent whose call dispatched this one, if it runs in this process; otherwise nil
	args   []string  // command line arguments of mcp-host
	bin    string
	path   string        // directory to work in, as shown to the model; "": not given
	schema *reportSchema // nil: any report is accepted
	before tally         // usage of the agent's earlier prompts

	waitFor  func(ctx context.Context) (release func(), err error) // waits for a permit to run
	giveBack func(used tally)                                      // returns the unused part of the reserved budget; called once, with the total usage
}

// outcome is the result of an agent's run.
type outcome struct {
	report       string
	why          string
	summed       bool
	fault        *fault
	conversation json.RawMessage
	model        string
	used         tally
	at           time.Time
	misfit       string // why the report does not match output_schema; "": it matches
}

// over reports whether the agent has ended.
func (a *agent) over() bool {
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
	o := a.work(ctx, d)
	a.mu.Lock()
	defer a.mu.Unlock()
	o.at, o.used = time.Now(), a.usedNow()
	a.outcome = o
}

// work runs the agent's process, and runs it once more if the report does not
// match output_schema.
func (a *agent) work(ctx context.Context, d *dispatcher) outcome {
	release, err := a.spec.waitFor(ctx)
	if err != nil {
		return outcome{why: cancelled, fault: faultOf(err)}
	}
	defer release()
	a.set(func() { a.waiting, a.now = false, "starting" })
	o := a.process(ctx, d, a.spec.task)
	if a.spec.schema == nil || o.why != goalReached && !o.summed {
		return o
	}
	if o.report, o.misfit = a.spec.schema.check(o.report); o.misfit == "" || o.conversation == nil || ctx.Err() != nil {
		return o
	}
	a.set(func() { a.now = "formatting the report" })
	again := a.spec.task
	again.Prompt, again.Conversation = repairPrompt(o.misfit), o.conversation
	again.Tools, again.Host, again.MaxTurns = toolSet{}, nil, 1
	again.TimeoutMS = max(again.GraceMS, time.Until(a.spec.until).Milliseconds())
	second := a.process(ctx, d, again)
	report, misfit := a.spec.schema.check(second.report)
	if second.why != goalReached || misfit != "" {
		return o
	}
	o.report, o.misfit, o.conversation = report, "", second.conversation
	return o
}

// process runs mcp-host agent with one task until it ends.
func (a *agent) process(ctx context.Context, d *dispatcher, t task) outcome {
	seal, err := a.spec.grant.sealed(d.key)
	if err != nil {
		return outcome{why: lost, fault: faultOf(err)}
	}
	c, err := d.launcher.launch(a.spec.bin, a.spec.args, append(d.environ, grantVariable+"="+seal), t)
	if err != nil {
		return outcome{why: lost, fault: faultOf(err)}
	}
	a.set(func() { a.base = a.usedNow() })
	limit := time.Duration(t.TimeoutMS+t.GraceMS)*time.Millisecond + slack
	timer := time.AfterFunc(limit, func() { a.cancel(context.DeadlineExceeded) })
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(stopped)
		c.stop()
	})
	var last *event
	c.read(func(e event) { //nolint:errcheck // the end of the output, however it came
		if e.Type == "ended" {
			last = &e
		}
		a.take(e)
	})
	timer.Stop()
	if !unwatch() {
		<-stopped
	}
	c.stop()
	c.stdout.Close() //nolint:errcheck // read to its end
	if last == nil {
		return a.broken(ctx, d, c)
	}
	if string(last.Conversation) == "null" {
		last.Conversation = nil
	}
	if last.Why == pending && last.Error == nil && len(last.Pending) > 0 {
		last.Error = a.asks(last.Pending)
	}
	return outcome{
		report: strings.TrimSpace(last.Text), why: last.Why, summed: last.Summed, fault: last.Error,
		conversation: last.Conversation, model: last.Model,
	}
}

// asks returns the error for an agent that ended because calls need approval.
func (a *agent) asks(all []pendingCall) *fault {
	var words []string
	for _, w := range all[:min(len(all), 10)] {
		words = append(words, fmt.Sprintf("%s (%s): %s", shorten(visible(w.Tool), 64), shorten(visible(w.ID), 64), shorten(visible(w.Reason), 200)))
	}
	return &fault{string(toolerr.PendingApproval), fmt.Sprintf("the agent needs approval for %s. Tell the user; once it is given (mcp-host approvals), "+
		"continue the agent with agent_id %s and a prompt that says to make exactly the same call again", strings.Join(words, "; "), a.id)}
}

// broken returns the outcome of a process that ended without an "ended" event.
func (a *agent) broken(ctx context.Context, d *dispatcher, c *child) outcome {
	a.mu.Lock()
	o := outcome{report: strings.TrimSpace(a.found), why: lost}
	a.mu.Unlock()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.DeadlineExceeded):
		o.why, o.fault = overdue, &fault{string(toolerr.Timeout), "the agent exceeded its timeout and was killed"}
	case cause != nil:
		o.why, o.fault = cancelled, &fault{string(toolerr.Cancelled), cause.Error()}
	case c.cmd.ProcessState.ExitCode() == usageStatus:
		o.why = unbegun
		o.fault = &fault{string(toolerr.InvalidParams), c.stderr.last()}
		if files := kindList(d.config.kindsDir()); files != "" && a.spec.kind != "" {
			o.fault.Message += "; from files: " + files
		}
	default:
		o.fault = &fault{string(toolerr.ExecutionError), "the agent's process ended without an answer: " + c.lastWords()}
		if a.kept != "" {
			o.fault.Message += fmt.Sprintf("; its steps are saved: mcp-host agent --resume %s --state %s continues them", a.kept, d.stateDir)
		}
	}
	return o
}

func faultOf(err error) *fault { return &fault{string(toolerr.CodeOf(err)), err.Error()} }

// left returns the limits for agents that this agent dispatches: its grant less
// its own usage. What other dispatched agents use is subtracted by budget.
func (a *agent) left() grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.spec.grant
	g.Turns = max(1, g.Turns-a.turn)
	if g.Tokens > 0 {
		g.Tokens = max(1, g.Tokens-(a.used.usage.sum()-a.spec.before.usage.sum()))
	}
	if g.Cost > 0 {
		g.Cost = max(math.SmallestNonzeroFloat64, g.Cost-(a.used.cost-a.spec.before.cost))
	}
	return g
}
