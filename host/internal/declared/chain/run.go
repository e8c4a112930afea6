package chain

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// New returns the handler of a chain. The finished steps of a call that waits for a
// decision are stored in journal, unless that is nil. It returns the error of c.Validate.
func New(c Config, shape executor.Shape, callTool Call, journal Journal) (call.Handler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		arguments, err := executor.Arguments(req)
		if err != nil {
			return nil, err
		}
		r := &run{call: callTool, journal: journal, scope: scope{args: arguments, steps: map[string]outcome{}}, tool: req.Tool.Name}
		r.req = serializeNotifications(r.countQuestions(req))
		end, err := r.loadJournal(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		last, err := r.runSequence(ctx, "", c.Steps)
		err = r.storeOrDropSteps(ctx, err)
		switch {
		case errors.As(err, new(*stepFailedError)):
			return r.failure(err)
		case err != nil:
			return nil, err
		case c.Result != nil:
			value, err := r.scope.expand(c.Result)
			if err != nil {
				return nil, r.refError("result", err)
			}
			return shape.Result(r.tool, value)
		case last == nil:
			return shape.Result(r.tool, json.RawMessage("null"))
		case shape.Declared:
			return shape.Result(r.tool, last.referenceValue())
		}
		return last.result, nil
	}, nil
}

// serializeNotifications returns the request with an OnNotify that concurrent steps can
// call.
func serializeNotifications(req *call.Request) *call.Request {
	if req.OnNotify == nil {
		return req
	}
	var mu sync.Mutex
	one := *req
	one.OnNotify = func(method string, params json.RawMessage) {
		mu.Lock()
		defer mu.Unlock()
		req.OnNotify(method, params)
	}
	return &one
}

// run is one call of a chain. The parameter at of its methods is the position of a step in
// the chain.
type run struct {
	call    Call
	journal Journal
	req     *call.Request
	tool    string

	mu         sync.Mutex
	scope      scope
	results    map[string]json.RawMessage // results by stepID; with those of the call that this call continues
	continued  *StoredSteps               // stored data of the call that this call continues; nil: none
	unanswered int                        // number of unanswered questions

	storing sync.Mutex // held while the journal is written
}

// stepFailedError is the error of a step whose result has isError.
type stepFailedError struct {
	step   string
	result *call.Result
}

func (e *stepFailedError) Error() string { return "step " + e.step + " failed" }

// failure returns the result of a chain after a failed step: the step's result,
// with the name of the step.
func (r *run) failure(err error) (*call.Result, error) {
	var failed *stepFailedError
	errors.As(err, &failed)
	text := (&outcome{result: failed.result}).text()
	return executor.Failed(fmt.Sprintf("step %s failed: %s", failed.step, text)), nil
}

// refError returns the error for something of a step that cannot be built from its
// references.
func (r *run) refError(what string, err error) error {
	return &call.ExecutionError{Tool: r.tool, Phase: call.PhaseExecute, Message: r.tool + ": " + what + " cannot be built", Cause: toolerr.New(codeOf(err), "%w", err)}
}

// codeOf returns MISSING_PARAMETER for a reference to a value that is missing,
// EXECUTION_ERROR for other errors.
func codeOf(err error) toolerr.Code {
	if errors.As(err, new(*missingError)) {
		return toolerr.MissingParameter
	}
	return toolerr.ExecutionError
}

// runSequence runs steps in order and returns the outcome of the last one that ran; nil: none did. It
// stops at the first error.
func (r *run) runSequence(ctx context.Context, at string, steps []Step) (last *outcome, err error) {
	for i, s := range steps {
		at := fmt.Sprintf("%s/%d", at, i)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var one *outcome
		switch {
		case s.Parallel != nil:
			one, err = r.runParallel(ctx, at, s.Parallel)
		case s.If != nil:
			one, err = r.runChoice(ctx, at, s)
		default:
			one, err = r.runStep(ctx, at, s)
		}
		if err != nil {
			return nil, err
		}
		if one != nil {
			last = one
		}
	}
	return last, nil
}

// runChoice runs the steps of the branch that the condition selects, and returns the
// outcome of the last one; nil: none ran. It returns an error if the condition refers to a
// missing value, and those of the steps.
func (r *run) runChoice(ctx context.Context, at string, s Step) (*outcome, error) {
	r.mu.Lock()
	holds, err := s.If.holds(r.scope)
	r.mu.Unlock()
	switch {
	case err != nil:
		return nil, r.refError("a condition", err)
	case holds:
		return r.runSequence(ctx, at+"/then", s.Then)
	}
	return r.runSequence(ctx, at+"/else", s.Else)
}

// runParallel runs branches concurrently. The first failure ends the other branches. A
// branch that waits for a decision does not, because the finished work of the others
// would be repeated later.
func (r *run) runParallel(ctx context.Context, at string, branches [][]Step) (last *outcome, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends, errs := make([]*outcome, len(branches)), make([]error, len(branches))
	var first sync.Once
	var all sync.WaitGroup
	for i, branch := range branches {
		all.Go(func() {
			ends[i], errs[i] = r.runSequence(ctx, fmt.Sprintf("%s/parallel/%d", at, i), branch)
			if errs[i] != nil && !isPending(errs[i]) {
				first.Do(func() { err = errs[i] })
				cancel()
			}
		})
	}
	all.Wait()
	for _, waiting := range errs {
		err = cmp.Or(err, waiting)
	}
	for _, end := range ends {
		if end != nil {
			last = end
		}
	}
	return last, err
}

// runStep calls the tool of a step. It does not call a step again whose result the journal
// has. A failed call and an error result are errors, unless the step continues on
// errors.
func (r *run) runStep(ctx context.Context, at string, s Step) (*outcome, error) {
	arguments := json.RawMessage(`{}`)
	if s.Args != nil {
		r.mu.Lock()
		filled, err := r.scope.expand(s.Args)
		r.mu.Unlock()
		if err != nil {
			return nil, r.refError("the arguments of step "+s.name(), err)
		}
		arguments = filled
	}
	at = r.stepID(at, s.Args)
	if one := r.storedOutcome(at); one != nil {
		if err := r.journal.CheckAllowed(ctx, r.req, s.Tool, arguments); err != nil {
			return nil, r.stepError(s, err)
		}
		r.setOutcome(s, *one)
		return one, nil
	}
	res, err := r.call(ctx, r.req, s.Tool, arguments)
	if err != nil && (!s.Continue || ctx.Err() != nil) {
		if ctx.Err() != nil && !isPending(err) {
			return nil, ctx.Err()
		}
		return nil, r.stepError(s, err)
	}
	if err != nil {
		res = executor.Failed(string(toolerr.CodeOf(err)) + ": " + err.Error())
	}
	one := outcome{result: res, failed: res.IsError()}
	if one.failed && !s.Continue {
		return nil, &stepFailedError{s.name(), res}
	}
	known := one
	if known.waited = isPending(err); !known.waited { // with on_error: continue, a waiting step runs again in the next call
		known.result = r.record(ctx, at, res)
	}
	r.setOutcome(s, known)
	return &one, nil
}

// setOutcome makes the outcome of a step available to references of later steps.
func (r *run) setOutcome(s Step, one outcome) {
	if s.ID == "" {
		return
	}
	if !one.waited {
		one.sum = sha256.Sum256(one.result.Raw)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scope.steps[s.ID] = one
}

// stepError adds the step to an error. Pending calls and errors of servers keep their type.
func (r *run) stepError(s Step, err error) error {
	return &call.ExecutionError{Tool: r.tool, Phase: call.PhaseExecute, Message: fmt.Sprintf("%s: step %s could not be executed", r.tool, s.name()), Cause: err}
}

// name returns the id of the step, or the name of its tool.
func (s Step) name() string {
	if s.ID != "" {
		return s.ID
	}
	return s.Tool
}

// outcome is the result of a step.
type outcome struct {
	result *call.Result
	failed bool
	waited bool     // the step waits for a decision, and runs again in the next call
	sum    [32]byte // hash of the result; zero if the step waits
}

// referenceValue returns the result for references: its structured content, or its text as JSON
// if it is JSON, else as a string.
func (o *outcome) referenceValue() json.RawMessage {
	var r struct {
		Structured json.RawMessage `json:"structuredContent"`
	}
	if json.Unmarshal(o.result.Raw, &r) == nil && len(r.Structured) > 0 && string(r.Structured) != "null" {
		return r.Structured
	}
	text := o.text()
	if jsonrpc.Valid([]byte(text)) == nil {
		return json.RawMessage(text)
	}
	return jsonrpc.AppendString(nil, text)
}

// text returns the text parts of the result, joined by newlines; "" if it has none.
func (o *outcome) text() string {
	var r struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(o.result.Raw, &r) != nil {
		return ""
	}
	var text string
	for _, c := range r.Content {
		if c.Type == "text" {
			if text != "" {
				text += "\n"
			}
			text += c.Text
		}
	}
	return text
}
