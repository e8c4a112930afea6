package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// ClientTool is the Reason of a call that waits for the caller to carry it out.
const ClientTool = "client_tool"

// maxCalls bounds the calls of one answer.
const maxCalls = 128

// plannedCall is a call and what is to become of it.
type plannedCall struct {
	call   *llm.ToolCall
	refuse error // it is not made
	theirs bool  // it is the caller's to make
	known  bool  // its result was written down before the run was killed
	begun  bool  // it may have been made before the run was killed
	repeat bool  // it does no harm to make it again

	result  *llm.ToolResult
	pending *call.Pending
	unkept  error
}

// planCalls says what is to become of the calls of an answer.
func (r *run) planCalls(calls []*llm.ToolCall, tools []llm.Tool, choice *llm.Choice) []*plannedCall {
	all := make([]*plannedCall, len(calls))
	for i, c := range calls {
		p := &plannedCall{call: c}
		all[i] = p
		at := slices.IndexFunc(tools, func(t llm.Tool) bool { return t.Name == c.Name })
		p.repeat = at >= 0 && repeatable(tools[at])
		switch {
		case !chosen(choice, c.Name):
			p.refuse = toolerr.New(toolerr.PolicyDenied, "%s cannot be called in this turn", c.Name)
			continue
		case r.isCallerTool(c.Name):
			p.theirs = true
			continue
		case c.Malformed != "":
			p.refuse = toolerr.New(toolerr.InvalidParams, "the arguments are not one JSON object; call %s again with one", c.Name)
		case i >= maxCalls:
			p.refuse = toolerr.New(toolerr.LimitReached, "only the first %d calls of an answer are executed; repeat this call if it is still needed", maxCalls)
			continue
		}
		key := callKey(c)
		if most := r.cfg.Bounds.Identical; most > 0 && r.same[key] >= most {
			p.refuse = errIdentical
			continue
		}
		r.same[key]++
	}
	return all
}

// errIdentical is why a call is not made that was made often enough.
var errIdentical = toolerr.New(toolerr.LimitReached, "the same call was repeated up to the limit, and its result is known: change the arguments, or continue without it")

// chosen reports whether a choice leaves a tool.
func chosen(choice *llm.Choice, name string) bool {
	return choice == nil || choice.Mode != llm.ChoiceNone && (len(choice.ToolNames) == 0 || slices.Contains(choice.ToolNames, name))
}

// repeatable reports whether a tool says that a call does no harm when it is made
// twice.
func repeatable(t llm.Tool) bool {
	var hints struct {
		ReadOnly   bool `json:"readOnlyHint"`
		Idempotent bool `json:"idempotentHint"`
	}
	return json.Unmarshal(t.Annotations, &hints) == nil && (hints.ReadOnly || hints.Idempotent)
}

// makeCalls makes the calls of an answer, several at once, and adds their results to the
// history in the order of the calls.
func (r *run) makeCalls(ctx context.Context, all []*plannedCall) (Ending, error) {
	workers := min(r.cfg.Bounds.Parallel, len(all))
	if one := r.cfg.Request.Parallel; one != nil && !*one {
		workers = 1
	}
	free := make(chan struct{}, workers)
	var done sync.WaitGroup
	for _, p := range all {
		if p.theirs || p.known {
			continue
		}
		free <- struct{}{}
		r.begin(ctx, p)
		done.Go(func() {
			r.runCall(ctx, p)
			<-free
		})
	}
	done.Wait()
	return r.gatherResults(ctx, all)
}

// gatherResults takes the results in, and says why the run is to end.
func (r *run) gatherResults(ctx context.Context, all []*plannedCall) (Ending, error) {
	m := llm.Message{Role: llm.ToolRole}
	var theirs []*llm.ToolCall
	refused := 0
	var unkept []error
	for _, p := range all {
		if p.theirs && ctx.Err() != nil { // the run does not end for their sake
			p.theirs, p.result = false, told(p.call, errCut, 0)
		}
		if p.refuse == errIdentical { //nolint:errorlint // this very one
			refused++
		}
		if p.unkept != nil {
			unkept = append(unkept, p.unkept)
		}
		if p.theirs {
			theirs = append(theirs, p.call)
			continue
		}
		if p.pending != nil {
			r.out.Pending = append(r.out.Pending, p.pending)
		}
		m.Parts = append(m.Parts, llm.Part{Type: llm.ResultPart, ToolResult: p.result})
	}
	if len(m.Parts) > 0 {
		r.history = append(r.history, m)
	}
	switch {
	case len(unkept) > 0:
		return Unkept, unkept[0]
	case ctx.Err() != nil:
		return interrupted, nil
	case len(theirs) > 0:
		r.out.Theirs = theirs
		return Theirs, nil
	case len(r.out.Pending) > 0:
		return Waiting, nil
	case refused == len(all):
		return Identical, nil
	}
	return "", nil
}

// errCut is why a call was not made, or not to its end.
var errCut = toolerr.New(toolerr.Cancelled, "the run ended before this call was made")

// begin sees to it that a call is known of before it is made, or says why it is not.
// Calls are begun in their order.
func (r *run) begin(ctx context.Context, p *plannedCall) {
	r.emit(Event{Type: Called, ID: p.call.ID, Turn: r.out.Turns, Call: p.call})
	switch {
	case p.refuse != nil:
	case p.begun && !p.repeat:
		p.refuse = errUnknown
	case ctx.Err() != nil:
		p.refuse = errCut
	case !p.begun:
		if p.unkept = r.writeStep(step{Step: stepCall, Turn: r.out.Turns, ID: p.call.ID, Repeat: p.repeat}); p.unkept != nil {
			p.refuse = toolerr.New(toolerr.Internal, "the call was not made, because the journal could not be written")
		}
	}
}

// runCall carries one call out, unless there is a reason not to.
func (r *run) runCall(ctx context.Context, p *plannedCall) {
	ctx, took := call.MeasureTime(ctx)
	if p.refuse != nil {
		p.result = told(p.call, p.refuse, 0)
	} else {
		r.perform(ctx, p, took)
	}
	if err := r.writeStep(step{Step: stepResult, Turn: r.out.Turns, ID: p.call.ID, Result: p.result, Pending: p.pending}); err != nil && p.unkept == nil {
		p.unkept = err
	}
	if p.theirs {
		return
	}
	r.emit(Event{Type: Returned, ID: p.call.ID, Turn: r.out.Turns, Call: p.call, Result: p.result, Took: took()})
}

// perform makes a call and takes its result in a form that the model can be sent. measured
// returns how long the call took.
func (r *run) perform(ctx context.Context, p *plannedCall, measured func() time.Duration) {
	res, err := r.reach(ctx, p.call)
	took := measured()
	if err == nil && res == nil {
		err = toolerr.New(toolerr.Internal, "%s returned an empty result", p.call.Name)
	}
	if !toolerr.Is(err, toolerr.ToolNotFound) {
		r.telling.Lock()
		r.out.Calls[p.call.Name]++
		r.telling.Unlock()
	}
	var waits *call.PendingError
	switch {
	case errors.As(err, &waits) && waits.Pending.Reason == ClientTool && ctx.Err() == nil:
		p.theirs = true
	case errors.As(err, &waits) && waits.Pending.Reason != ClientTool:
		pending := waits.Pending
		p.pending = &pending
		p.result = told(p.call, err, took)
	case err != nil:
		if ctx.Err() != nil {
			err = toolerr.New(toolerr.Cancelled, "the run ended during this call, which may have taken effect: %w", err)
		}
		p.result = told(p.call, err, took)
	default:
		p.result = r.shown(p.call, res, took)
	}
}

// reach calls the tool. Whatever it does, there is an answer.
func (r *run) reach(ctx context.Context, c *llm.ToolCall) (res *call.Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			res, err = nil, toolerr.New(toolerr.Internal, "the call failed within the host: %v", fault)
			r.emit(Event{Type: Error, ID: c.ID, Turn: r.out.Turns, Err: fmt.Errorf("%w\n%s", err, debug.Stack())})
		}
	}()
	if r.cfg.Tools == nil {
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q; no tools are available", c.Name)
	}
	over := false
	progress := func(text string) {
		r.telling.Lock()
		defer r.telling.Unlock()
		if !over && r.cfg.On != nil {
			r.cfg.On(Event{Type: Progress, ID: c.ID, Turn: r.out.Turns, Call: c, Text: text})
		}
	}
	defer func() {
		r.telling.Lock()
		defer r.telling.Unlock()
		over = true
	}()
	given := *c
	return r.cfg.Tools.Call(r.withLeft(ctx), &given, progress)
}
