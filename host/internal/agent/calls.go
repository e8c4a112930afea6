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

// ClientTool is the Reason of a call that the caller must make.
const ClientTool = "client_tool"

// maxCalls bounds the calls of one answer.
const maxCalls = 128

// plannedCall is a call with the decision what to do with it.
type plannedCall struct {
	call     *llm.ToolCall
	refuse   error // why it is not made; nil: it is made
	byCaller bool  // the caller makes it
	isStored bool  // its result was stored before the run was killed
	begun    bool  // it may have been made before the run was killed
	repeat   bool  // it may be repeated

	result     *llm.ToolResult
	pending    *call.Pending
	journalErr error
}

// planCalls decides for each call of an answer, in their order, whether the run makes it,
// the caller makes it, or it is refused: for a forbidden choice, malformed arguments, more
// than maxCalls calls, or too many identical ones. It makes no call.
func (r *run) planCalls(calls []*llm.ToolCall, tools []llm.Tool, choice *llm.Choice) []*plannedCall {
	all := make([]*plannedCall, len(calls))
	for i, c := range calls {
		p := &plannedCall{call: c}
		all[i] = p
		at := slices.IndexFunc(tools, func(t llm.Tool) bool { return t.Name == c.Name })
		p.repeat = at >= 0 && isRepeatable(tools[at])
		switch {
		case !choicePermits(choice, c.Name):
			p.refuse = toolerr.New(toolerr.PolicyDenied, "%s cannot be called in this turn", c.Name)
			continue
		case r.isCallerTool(c.Name):
			p.byCaller = true
			continue
		case c.Malformed != "":
			p.refuse = toolerr.New(toolerr.InvalidParams, "the arguments are not one JSON object; call %s again with one", c.Name)
		case i >= maxCalls:
			p.refuse = toolerr.New(toolerr.LimitReached, "only the first %d calls of an answer are executed; repeat this call if it is still needed", maxCalls)
			continue
		}
		key := callKey(c)
		if most := r.cfg.Bounds.Identical; most > 0 && r.identicalCalls[key] >= most {
			p.refuse = errIdentical
			continue
		}
		r.identicalCalls[key]++
	}
	return all
}

// errIdentical is the error for a call that was repeated too often.
var errIdentical = toolerr.New(toolerr.LimitReached, "the same call was repeated up to the limit, and its result is known: change the arguments, or continue without it")

// choicePermits reports whether a choice permits a tool.
func choicePermits(choice *llm.Choice, name string) bool {
	return choice == nil || choice.Mode != llm.ChoiceNone && (len(choice.ToolNames) == 0 || slices.Contains(choice.ToolNames, name))
}

// isRepeatable reports whether the tool's hints say that a repeated call does no harm.
func isRepeatable(t llm.Tool) bool {
	var hints struct {
		ReadOnly   bool `json:"readOnlyHint"`
		Idempotent bool `json:"idempotentHint"`
	}
	return json.Unmarshal(t.Annotations, &hints) == nil && (hints.ReadOnly || hints.Idempotent)
}

// makeCalls makes the calls of an answer concurrently and waits for all. It adds their
// results to the history in the order of the calls. It returns the reason to end the run;
// "": none.
func (r *run) makeCalls(ctx context.Context, all []*plannedCall) (Ending, error) {
	workers := min(r.cfg.Bounds.Parallel, len(all))
	if one := r.cfg.Request.Parallel; one != nil && !*one {
		workers = 1
	}
	free := make(chan struct{}, workers)
	var done sync.WaitGroup
	for _, p := range all {
		if p.byCaller || p.isStored {
			continue
		}
		free <- struct{}{}
		r.beginCall(ctx, p)
		done.Go(func() {
			r.runCall(ctx, p)
			<-free
		})
	}
	done.Wait()
	return r.gatherResults(ctx, all)
}

// gatherResults adds the results to the history, and returns the reason to end the run; "":
// none. The error belongs to the reason, and can be nil.
func (r *run) gatherResults(ctx context.Context, all []*plannedCall) (Ending, error) {
	m := llm.Message{Role: llm.ToolRole}
	var theirs []*llm.ToolCall
	refused := 0
	var unkept []error
	for _, p := range all {
		if p.byCaller && ctx.Err() != nil { // calls of the caller do not decide the ending now
			p.byCaller, p.result = false, errorResult(p.call, errCut, 0)
		}
		if p.refuse == errIdentical { //nolint:errorlint // exactly this error
			refused++
		}
		if p.journalErr != nil {
			unkept = append(unkept, p.journalErr)
		}
		if p.byCaller {
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
		return EndJournalError, unkept[0]
	case ctx.Err() != nil:
		return interrupted, nil
	case len(theirs) > 0:
		r.out.CallerCalls = theirs
		return EndCallerTools, nil
	case len(r.out.Pending) > 0:
		return EndPending, nil
	case refused == len(all):
		return EndIdentical, nil
	}
	return "", nil
}

// errCut is the error for a call that was not made, or not completed.
var errCut = toolerr.New(toolerr.Cancelled, "the run ended before this call was made")

// beginCall announces a call and records it in the journal before it is made. It sets
// p.refuse if the call must not be made: the journal cannot be written, ctx has ended,
// or an earlier process began the call and it is not repeatable. Calls begin in their
// order.
func (r *run) beginCall(ctx context.Context, p *plannedCall) {
	r.emit(Event{Type: CallEvent, ID: p.call.ID, Turn: r.out.Turns, Call: p.call})
	switch {
	case p.refuse != nil:
	case p.begun && !p.repeat:
		p.refuse = errUnknown
	case ctx.Err() != nil:
		p.refuse = errCut
	case !p.begun:
		if p.journalErr = r.writeStep(step{Step: stepCall, Turn: r.out.Turns, ID: p.call.ID, Repeat: p.repeat}); p.journalErr != nil {
			p.refuse = toolerr.New(toolerr.Internal, "the call was not made, because the journal could not be written")
		}
	}
}

// runCall makes a call, or gives a refused one its error as result. It records the result
// in the journal and reports it as an event.
func (r *run) runCall(ctx context.Context, p *plannedCall) {
	ctx, took := call.MeasureTime(ctx)
	if p.refuse != nil {
		p.result = errorResult(p.call, p.refuse, 0)
	} else {
		r.performCall(ctx, p, took)
	}
	if err := r.writeStep(step{Step: stepResult, Turn: r.out.Turns, ID: p.call.ID, Result: p.result, Pending: p.pending}); err != nil && p.journalErr == nil {
		p.journalErr = err
	}
	if p.byCaller {
		return
	}
	r.emit(Event{Type: ResultEvent, ID: p.call.ID, Turn: r.out.Turns, Call: p.call, Result: p.result, Took: took()})
}

// performCall makes a call and converts its result or error for the model. If the tool's caller
// has to make the call, or it waits for a decision, p says so. measured returns the
// duration of the call.
func (r *run) performCall(ctx context.Context, p *plannedCall, measured func() time.Duration) {
	res, err := r.callTool(ctx, p.call)
	took := measured()
	if err == nil && res == nil {
		err = toolerr.New(toolerr.Internal, "%s returned an empty result", p.call.Name)
	}
	if !toolerr.Is(err, toolerr.ToolNotFound) {
		r.emitting.Lock()
		r.out.Calls[p.call.Name]++
		r.emitting.Unlock()
	}
	var waits *call.PendingError
	switch {
	case errors.As(err, &waits) && waits.Pending.Reason == ClientTool && ctx.Err() == nil:
		p.byCaller = true
	case errors.As(err, &waits) && waits.Pending.Reason != ClientTool:
		pending := waits.Pending
		p.pending = &pending
		p.result = errorResult(p.call, err, took)
	case err != nil:
		if ctx.Err() != nil {
			err = toolerr.New(toolerr.Cancelled, "the run ended during this call, which may have taken effect: %w", err)
		}
		p.result = errorResult(p.call, err, took)
	default:
		p.result = r.modelResult(p.call, res, took)
	}
}

// callTool makes a call with the run's tools. A panic of the tool becomes the error
// INTERNAL, and an event with the stack.
func (r *run) callTool(ctx context.Context, c *llm.ToolCall) (res *call.Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			res, err = nil, toolerr.New(toolerr.Internal, "the call failed within the host: %v", fault)
			r.emit(Event{Type: ErrorEvent, ID: c.ID, Turn: r.out.Turns, Err: fmt.Errorf("%w\n%s", err, debug.Stack())})
		}
	}()
	if r.cfg.Tools == nil {
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q; no tools are available", c.Name)
	}
	over := false
	progress := func(text string) {
		r.emitting.Lock()
		defer r.emitting.Unlock()
		if !over && r.cfg.On != nil {
			r.cfg.On(Event{Type: ProgressEvent, ID: c.ID, Turn: r.out.Turns, Call: c, Text: text})
		}
	}
	defer func() {
		r.emitting.Lock()
		defer r.emitting.Unlock()
		over = true
	}()
	given := *c
	return r.cfg.Tools.Call(r.withRemainingBudget(ctx), &given, progress)
}
