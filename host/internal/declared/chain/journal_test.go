package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/chain"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// notes is a journal of one call.
type notes struct {
	value []byte
	until time.Time
	fault error
	no    string // the tool that must not be called any more
	taken int    // by calls that are not over
}

func (n *notes) CheckAllowed(_ context.Context, _ *call.Request, tool string, _ json.RawMessage) error {
	if tool == n.no {
		return toolerr.New(toolerr.PolicyDenied, "%s must not be called", tool)
	}
	return nil
}

func (n *notes) LoadAndLock(context.Context, *call.Request) (*chain.StoredSteps, error) {
	if n.value == nil {
		return nil, nil
	}
	n.taken++
	return &chain.StoredSteps{Value: n.value, Until: n.until, Drop: func(context.Context) { n.value = nil }, Release: func() { n.taken-- }}, nil
}

func (n *notes) Save(_ context.Context, _ *call.Request, value []byte, until time.Time) error {
	n.value, n.until = value, until
	return n.fault
}

// bench is tools that say that they were called; those in waiting wait for
// somebody.
type bench struct {
	mu      sync.Mutex
	made    []string
	waiting map[string]bool
	busy    bool // of the tool of that name
	until   time.Time
}

func (b *bench) call(ctx context.Context, req *call.Request, tool string, arguments json.RawMessage) (*call.Result, error) {
	if tool == "asks" {
		if _, err := req.Ask(ctx, "elicitation/create", nil); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[tool] {
		return nil, &call.PendingError{Pending: call.Pending{ID: tool, Tool: tool, Message: "wait", ExpiresAt: b.until}}
	}
	if tool == "busy" && b.busy {
		return nil, toolerr.New(toolerr.RateLimited, "busy")
	}
	b.made = append(b.made, tool)
	if tool == "spaced" {
		return &call.Result{Raw: raw(`{"content": [], "structuredContent": {"a": 1}}`)}, nil
	}
	if tool == "fails" {
		return executor.Failed("it went wrong"), nil
	}
	return executor.Shape{}.Result(tool, arguments)
}

func (b *bench) taken() []string {
	made := slices.Sorted(slices.Values(b.made))
	b.made = nil
	return made
}

// A step that was made is not made again when the call goes on after a later
// one has waited, and what it gave is there.
func TestStepsAreNotMadeAgain(t *testing.T) {
	steps := []chain.Step{
		{ID: "one", Tool: "first", Args: raw(`{"x":"${args.x}"}`)},
		{ID: "f", Tool: "fails", Continue: true},
		{Parallel: [][]chain.Step{
			{{ID: "l", Tool: "left"}, {Tool: "gate"}},
			{{ID: "r", Tool: "right"}, {Tool: "after"}},
		}},
		{If: &chain.Condition{Value: raw(`"${steps.f.is_error}"`)}, Then: []chain.Step{{ID: "t", Tool: "then"}, {Tool: "last"}}},
	}
	b := &bench{waiting: map[string]bool{"gate": true, "last": true}, until: time.Now().Add(time.Hour)}
	kept := &notes{}
	h, err := chain.New(chain.Config{Steps: steps, Result: raw(`{"x":"${steps.one.result.x}","failed":"${steps.f.is_error}"}`)}, executor.Shape{}, b.call, kept)
	require.NoError(t, err)
	do := func() (*call.Result, error) {
		return h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}, Params: raw(`{"arguments":{"x":7}}`)})
	}
	_, err = do()
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	require.Equal(t, []string{"after", "fails", "first", "left", "right"}, b.taken(), "a branch that does not wait is made to its end")
	require.WithinDuration(t, b.until.Add(time.Hour), kept.until, 5*time.Minute)

	_, err = do()
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	require.Empty(t, b.taken(), "nobody has decided")
	delete(b.waiting, "gate")
	_, err = do()
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	require.Equal(t, []string{"gate", "then"}, b.taken())
	delete(b.waiting, "last")
	res, err := do()
	require.NoError(t, err)
	require.Equal(t, []string{"last"}, b.taken())
	require.Contains(t, string(res.Raw), `"text":"{\"x\":7,\"failed\":true}"`)
	require.Nil(t, kept.value)

	_, err = do()
	require.NoError(t, err)
	require.Equal(t, []string{"after", "fails", "first", "gate", "last", "left", "right", "then"}, b.taken(), "a call that is over is not gone on with")
}

// A question that nobody answered ends the call; made again it goes on there.
func TestACallGoesOnAtItsQuestion(t *testing.T) {
	b, kept := &bench{}, &notes{}
	h, err := chain.New(chain.Config{Steps: []chain.Step{{Tool: "first"}, {Tool: "asks"}}}, executor.Shape{}, b.call, kept)
	require.NoError(t, err)
	ctx, gone := context.WithCancel(t.Context())
	req := func(ask call.Ask) *call.Request { return &call.Request{Tool: &call.Tool{Name: "tool"}, Ask: ask} }
	_, err = h(ctx, req(func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		gone()
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"first"}, b.taken())
	answered := func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return raw(`{}`), nil }
	_, err = h(t.Context(), req(answered))
	require.NoError(t, err)
	require.Equal(t, []string{"asks"}, b.taken())

	// What ends for another reason is not gone on with.
	h, err = chain.New(chain.Config{Steps: []chain.Step{{Tool: "first"}, {Tool: "fails"}}}, executor.Shape{}, b.call, kept)
	require.NoError(t, err)
	res, err := h(t.Context(), req(answered))
	require.NoError(t, err)
	require.True(t, res.IsError())
	require.Nil(t, kept.value)
}

// A call that goes on and is kept from its end is gone on with the next time; one
// that has come to an end is not.
func TestACallThatGoesOnIsInterrupted(t *testing.T) {
	b, kept := &bench{waiting: map[string]bool{"gate": true}}, &notes{}
	h, err := chain.New(chain.Config{Steps: []chain.Step{{Tool: "first"}, {Tool: "gate"}, {Tool: "busy"}, {Tool: "fails"}}}, executor.Shape{}, b.call, kept)
	require.NoError(t, err)
	do := func(ctx context.Context) (*call.Result, error) {
		return h(ctx, &call.Request{Tool: &call.Tool{Name: "tool"}})
	}
	_, err = do(t.Context())
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	require.Equal(t, []string{"first"}, b.taken())

	b.waiting, b.busy = nil, true
	_, err = do(t.Context())
	require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(err))
	require.Equal(t, []string{"gate"}, b.taken())
	ctx, gone := context.WithCancel(t.Context())
	gone()
	_, err = do(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, b.taken())
	b.busy = false
	res, err := do(t.Context())
	require.NoError(t, err)
	require.True(t, res.IsError())
	require.Equal(t, []string{"busy", "fails"}, b.taken())
	require.Nil(t, kept.value)
}

// A call that goes on is killed at one of its steps. The next one goes on from
// there, and has made none of those before again.
func TestACallThatGoesOnIsKilled(t *testing.T) {
	for at, want := range []string{"gate", "then"} {
		b, kept := &bench{waiting: map[string]bool{"gate": true}}, &notes{}
		var killed chain.Call = b.call
		h, err := chain.New(chain.Config{Steps: []chain.Step{{Tool: "first"}, {Tool: "gate"}, {Tool: "then"}}}, executor.Shape{}, func(ctx context.Context, req *call.Request, tool string, arguments json.RawMessage) (*call.Result, error) {
			return killed(ctx, req, tool, arguments)
		}, kept)
		require.NoError(t, err)
		do := func() error {
			_, err := h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}})
			return err
		}
		require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(do()))
		require.Equal(t, []string{"first"}, b.taken())
		b.waiting = nil
		killed = func(ctx context.Context, req *call.Request, tool string, arguments json.RawMessage) (*call.Result, error) {
			if tool == want {
				runtime.Goexit()
			}
			return b.call(ctx, req, tool, arguments)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			do() //nolint:errcheck // it does not return
		}()
		<-done
		require.Len(t, b.taken(), at, want)
		killed = b.call
		require.NoError(t, do())
		require.Equal(t, []string{"gate", "then"}[at:], b.taken(), want)
		require.Nil(t, kept.value)
		require.Zero(t, kept.taken)
	}
}

// A step that refers to one that was waited for, and has come to something else
// since, is another step; none is that is only written otherwise.
func TestAStepThatRefersToOneThatWaitedIsMade(t *testing.T) {
	b, kept := &bench{waiting: map[string]bool{"one": true, "two": true}}, &notes{}
	h, err := chain.New(chain.Config{Steps: []chain.Step{
		{ID: "s", Tool: "spaced"}, {ID: "a", Tool: "one", Continue: true}, {Tool: "tells", Args: raw(`{"failed":"${steps.a.is_error}"}`)},
		{ID: "same", Tool: "same", Args: raw(`{"x":"it is ${steps.s.result} of ${args.of}"}`)}, {Tool: "next", Args: raw(`{"x":"${steps.same.result}"}`)}, {Tool: "two"},
	}}, executor.Shape{}, b.call, kept)
	require.NoError(t, err)
	do := func(arguments string) error {
		_, err := h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}, Params: raw(`{"arguments":{"of":` + arguments + `}}`)})
		return err
	}
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(do(`{"a":1,"b":2}`)))
	require.Equal(t, []string{"next", "same", "spaced", "tells"}, b.taken())
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(do(`{"b":2, "a":1}`)))
	require.Empty(t, b.taken())
	b.waiting = nil
	require.NoError(t, do(`{ "b":2,"a":1}`))
	require.Equal(t, []string{"one", "tells", "two"}, b.taken())
}

// What a caller may not call it is not told the result of either.
func TestWhatWasDoneIsAllowedStill(t *testing.T) {
	b, kept := &bench{waiting: map[string]bool{"gate": true}}, &notes{}
	h, err := chain.New(chain.Config{Steps: []chain.Step{{Tool: "first"}, {Tool: "gate"}}}, executor.Shape{}, b.call, kept)
	require.NoError(t, err)
	req := &call.Request{Tool: &call.Tool{Name: "tool"}}
	_, err = h(t.Context(), req)
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	kept.no, b.waiting = "first", nil
	_, err = h(t.Context(), req)
	require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))
	require.Equal(t, []string{"first"}, b.taken())
}

// Who called is told when what was done cannot be kept.
func TestWhatCannotBeKeptIsSaid(t *testing.T) {
	for want, n := range map[string]*notes{"no store": {fault: errors.New("no store")}, "bytes, more than": {}} {
		b := &bench{waiting: map[string]bool{"gate": true}}
		h, err := chain.New(chain.Config{Steps: []chain.Step{{Tool: "first", Args: raw(`{"x":"${args.x}"}`)}, {Tool: "gate"}}}, executor.Shape{}, b.call, n)
		require.NoError(t, err)
		long := "1"
		if n.fault == nil {
			long = `"` + strings.Repeat("x", 1<<20) + `"`
		}
		_, err = h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}, Params: raw(`{"arguments":{"x":` + long + `}}`)})
		require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
		require.ErrorContains(t, err, "run again")
		require.ErrorContains(t, err, want)
	}
}
