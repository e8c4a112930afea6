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

// New makes the handler of a valid configuration. What a call has done that
// waits for somebody goes into the journal, unless that is nil.
func New(c Config, shape executor.Shape, make Call, journal Journal) (call.Handler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		arguments, err := executor.Arguments(req)
		if err != nil {
			return nil, err
		}
		r := &run{call: make, journal: journal, scope: scope{args: arguments, steps: map[string]outcome{}}, tool: req.Tool.Name}
		r.req = serial(r.asking(req))
		end, err := r.begin(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		last, err := r.sequence(ctx, "", c.Steps)
		err = r.over(ctx, err)
		switch {
		case errors.As(err, new(*stepFailed)):
			return r.failure(err)
		case err != nil:
			return nil, err
		case c.Result != nil:
			value, err := r.scope.fill(c.Result)
			if err != nil {
				return nil, r.unfilled("result", err)
			}
			return shape.Result(r.tool, value)
		case last == nil:
			return shape.Result(r.tool, json.RawMessage("null"))
		case shape.Declared:
			return shape.Result(r.tool, last.value())
		}
		return last.result, nil
	}, nil
}

// serial is the request for steps that may run at once: what they notify comes
// one after the other.
func serial(req *call.Request) *call.Request {
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

// run is one call.
type run struct {
	call    Call
	journal Journal
	req     *call.Request
	tool    string

	mu    sync.Mutex
	scope scope
	made  map[string]json.RawMessage // results by the step's place, see placed; also of the call that this one goes on with
	again *Kept                      // of another, which this one goes on with; nil: it does not
	open  int                        // questions that nobody has answered

	keeping sync.Mutex // held while it is kept
}

// stepFailed is a step whose tool says that it failed.
type stepFailed struct {
	step   string
	result *call.Result
}

func (e *stepFailed) Error() string { return "step " + e.step + " failed" }

// failure is the result of a chain whose step failed: the step's, with which
// it was.
func (r *run) failure(err error) (*call.Result, error) {
	var failed *stepFailed
	errors.As(err, &failed)
	text := (&outcome{result: failed.result}).text()
	return executor.Failed(fmt.Sprintf("step %s failed: %s", failed.step, text)), nil
}

func (r *run) unfilled(what string, err error) error {
	return &call.ExecutionError{Tool: r.tool, Phase: call.PhaseExecute, Message: r.tool + ": " + what + " cannot be built", Cause: toolerr.New(codeOf(err), "%w", err)}
}

func codeOf(err error) toolerr.Code {
	if errors.As(err, new(*missing)) {
		return toolerr.MissingParameter
	}
	return toolerr.ExecutionError
}

// sequence makes steps one after the other and returns the last that was made.
func (r *run) sequence(ctx context.Context, at string, steps []Step) (last *outcome, err error) {
	for i, s := range steps {
		at := fmt.Sprintf("%s/%d", at, i)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var one *outcome
		switch {
		case s.Parallel != nil:
			one, err = r.parallel(ctx, at, s.Parallel)
		case s.If != nil:
			one, err = r.choice(ctx, at, s)
		default:
			one, err = r.step(ctx, at, s)
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

func (r *run) choice(ctx context.Context, at string, s Step) (*outcome, error) {
	r.mu.Lock()
	holds, err := s.If.holds(r.scope)
	r.mu.Unlock()
	switch {
	case err != nil:
		return nil, r.unfilled("a condition", err)
	case holds:
		return r.sequence(ctx, at+"/then", s.Then)
	}
	return r.sequence(ctx, at+"/else", s.Else)
}

// parallel makes branches at once. The first that fails ends the others; one
// that waits for somebody does not, so that what they do is not done twice.
func (r *run) parallel(ctx context.Context, at string, branches [][]Step) (last *outcome, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends, errs := make([]*outcome, len(branches)), make([]error, len(branches))
	var first sync.Once
	var all sync.WaitGroup
	for i, branch := range branches {
		all.Go(func() {
			ends[i], errs[i] = r.sequence(ctx, fmt.Sprintf("%s/parallel/%d", at, i), branch)
			if errs[i] != nil && !waits(errs[i]) {
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

func (r *run) step(ctx context.Context, at string, s Step) (*outcome, error) {
	arguments := json.RawMessage(`{}`)
	if s.Args != nil {
		r.mu.Lock()
		filled, err := r.scope.fill(s.Args)
		r.mu.Unlock()
		if err != nil {
			return nil, r.unfilled("the arguments of step "+s.name(), err)
		}
		arguments = filled
	}
	at = r.placed(at, s.Args)
	if one := r.before(at); one != nil {
		if err := r.journal.Allowed(ctx, r.req, s.Tool, arguments); err != nil {
			return nil, r.wrap(s, err)
		}
		r.note(s, *one)
		return one, nil
	}
	res, err := r.call(ctx, r.req, s.Tool, arguments)
	if err != nil && (!s.Continue || ctx.Err() != nil) {
		if ctx.Err() != nil && !waits(err) {
			return nil, ctx.Err()
		}
		return nil, r.wrap(s, err)
	}
	if err != nil {
		res = executor.Failed(string(toolerr.CodeOf(err)) + ": " + err.Error())
	}
	one := outcome{result: res, failed: res.IsError()}
	if one.failed && !s.Continue {
		return nil, &stepFailed{s.name(), res}
	}
	known := one
	if known.waited = waits(err); !known.waited { // which with on_error: continue is to be looked at again
		known.result = r.did(ctx, at, res)
	}
	r.note(s, known)
	return &one, nil
}

// note lets steps after it refer to what one gave.
func (r *run) note(s Step, one outcome) {
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

// wrap adds the step to an error. Pending calls and errors of servers keep their type.
func (r *run) wrap(s Step, err error) error {
	return &call.ExecutionError{Tool: r.tool, Phase: call.PhaseExecute, Message: fmt.Sprintf("%s: step %s could not be executed", r.tool, s.name()), Cause: err}
}

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
	waited bool     // for somebody, and is to be looked at again
	sum    [32]byte // of the result; zero of one that waited
}

func (o *outcome) value() json.RawMessage {
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
