// Package stagetest has the checks that every stage of the pipeline must pass, in addition to
// the tests of its purpose: a stage that has no objection does not change a call, and leaves
// nothing behind.
//
//	func TestStage(t *testing.T) {
//		stagetest.Run(t, func(t *testing.T) (call.Stage, func()) {
//			s := limit.New(limit.Config{})
//			return s.Stage, func() {}
//		})
//	}
//
// The checks run in a bubble of testing/synctest: time is simulated, and a goroutine that
// outlives the stage's end fails the test.
package stagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Open returns a stage that lets every call of this package pass, and a function that
// closes it.
type Open func(t *testing.T) (call.Stage, func())

// Tool returns the tool that the checks call: read-only, with any arguments.
func Tool() *call.Tool {
	return &call.Tool{
		Name: "srv__echo", Server: "srv", Original: "echo",
		Definition: json.RawMessage(`{"name":"srv__echo","inputSchema":{"type":"object"}}`),
		Traits:     call.Traits{Input: json.RawMessage(`{"type":"object"}`), ReadOnly: true},
	}
}

// Request returns a call of Tool by the caller with an id.
func Request(id, arguments string) *call.Request {
	return &call.Request{
		Tool:   Tool(),
		Params: json.RawMessage(`{"name":"srv__echo","arguments":` + arguments + `,"_meta":{"progressToken":7,"x-odd":1.0}}`),
		Caller: call.Caller{EntryPoint: "http", ID: id},
	}
}

// Text returns a result with one text item.
func Text(text string) *call.Result {
	return &call.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":` + strconv.Quote(text) + `}]}`)}
}

// Run runs all checks.
func Run(t *testing.T, open Open) {
	check := func(name string, f func(t *testing.T, stage call.Stage)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stage, end := open(t)
				defer end()
				f(t, stage)
			})
		})
	}
	check("results pass byte for byte", results)
	check("the request passes as it is", request)
	check("errors keep their identity", failures)
	check("a cancelled call ends at once", cancelled)
	check("a call of a cancelled caller ends at once", cancelledBefore)
	check("the caller's deadline holds", deadline)
	check("progress passes in order", progress)
	check("calls at once keep their own results", concurrent)
	check("nothing is kept of calls that are done", memory)
}

// results checks that results pass unchanged.
func results(t *testing.T, stage call.Stage) {
	for i, raw := range []string{
		`{}`,
		`{"content":[]}`,
		` { "content" : [ {"type":"text","text":"a\u00e9\/é","x":1.0} ] , "odd":1e2 } `,
		`{"isError":true,"content":[{"type":"text","text":"no"}]}`,
		`{"content":[],"structuredContent":{"b":1,"a":[2]},"_meta":{"k":null}}`,
		`{"resultType":"input_required","inputRequests":{},"requestState":"x"}`,
		`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"never heard of"}]}`,
	} {
		want := &call.Result{Raw: json.RawMessage(raw)}
		h := stage(func(context.Context, *call.Request) (*call.Result, error) { return want, nil })
		got, err := h(t.Context(), Request("a", `{"n":`+strconv.Itoa(i)+`}`))
		require.NoError(t, err)
		require.Equal(t, raw, string(got.Raw))
	}
}

// request checks that the request passes with its parameters and functions.
func request(t *testing.T, stage call.Stage) {
	asked := false
	var seen *call.Request
	h := stage(func(ctx context.Context, req *call.Request) (*call.Result, error) {
		seen = req
		_, err := req.Ask(ctx, "elicitation/create", nil)
		return Text("x"), err
	})
	want := Request("a", `{"z":1,"a":[ 1.0 ]}`)
	want.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		asked = true
		return nil, nil
	}
	params, tool, caller := string(want.Params), want.Tool, want.Caller
	_, err := h(t.Context(), want)
	require.NoError(t, err)
	require.True(t, asked, "a server's question reaches the caller")
	require.Equal(t, params, string(seen.Params))
	require.Same(t, tool, seen.Tool)
	require.Equal(t, caller, seen.Caller)

	// Neither arguments nor params are needed.
	h = stage(func(context.Context, *call.Request) (*call.Result, error) { return Text("x"), nil })
	for _, params := range []string{``, `{}`, `{"name":"srv__echo"}`, `{"arguments":null}`} {
		_, err = h(t.Context(), &call.Request{Tool: Tool(), Params: json.RawMessage(params)})
		require.NoError(t, err, params)
	}
}

// failures checks that errors pass with their types and causes.
func failures(t *testing.T, stage call.Stage) {
	cause := errors.New("the cause")
	for i, want := range []error{
		cause,
		&call.MCPError{Server: "srv", Code: -32602, Message: "bad", Object: json.RawMessage(`{"code":-32602,"odd":1.0}`)},
		&call.ExecutionError{Tool: "srv__echo", Phase: call.PhaseExecute, Message: "it broke", Cause: cause},
		&call.ExecutionError{Tool: "srv__echo", Phase: call.PhaseExecute, Message: "it died", Cause: toolerr.New(toolerr.ServerOffline, "gone")},
		&call.ValidationError{Type: call.ResultInvalid, Tool: "srv__echo", Detail: "odd"},
		toolerr.New(toolerr.TooLarge, "much: %w", cause),
	} {
		h := stage(func(context.Context, *call.Request) (*call.Result, error) { return nil, want })
		res, err := h(t.Context(), Request("a", `{"n":`+strconv.Itoa(i)+`}`))
		require.Nil(t, res)
		require.ErrorIs(t, err, want)
		require.Equal(t, toolerr.CodeOf(want), toolerr.CodeOf(err))
		var answered *call.MCPError
		if errors.As(want, &answered) {
			object := answered.Object
			require.ErrorAs(t, err, &answered)
			require.Equal(t, string(object), string(answered.Object))
		}
	}
}

// untilDone is a handler that returns only when its context ends.
func untilDone(ctx context.Context, _ *call.Request) (*call.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// bound is the longest time, in the bubble's time, until a stage notices a cancellation.
const bound = 10 * time.Millisecond

// cancelled checks that a call ends when its context is cancelled.
func cancelled(t *testing.T, stage call.Stage) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, cancel)
	begin := time.Now()
	_, err := stage(untilDone)(ctx, Request("a", `{}`))
	require.ErrorIs(t, err, context.Canceled)
	require.LessOrEqual(t, time.Since(begin), time.Second+bound)
}

// cancelledBefore checks that a call with a cancelled context ends at once.
func cancelledBefore(t *testing.T, stage call.Stage) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	_, err := stage(untilDone)(ctx, Request("a", `{}`))
	require.ErrorIs(t, err, context.Canceled)
	require.LessOrEqual(t, time.Since(begin), bound)
}

// deadline checks that a call ends at its deadline.
func deadline(t *testing.T, stage call.Stage) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	_, err := stage(untilDone)(ctx, Request("a", `{}`))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.LessOrEqual(t, time.Since(begin), time.Second+bound)
}

// progress checks that notifications pass in order, and none after the result.
func progress(t *testing.T, stage call.Stage) {
	h := stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
		for i := range 100 {
			req.OnNotify("notifications/progress", json.RawMessage(strconv.Itoa(i)))
		}
		return Text("done"), nil
	})
	req := Request("a", `{}`)
	var got []string
	returned := false
	req.OnNotify = func(method string, params json.RawMessage) {
		require.False(t, returned, "nothing comes after the answer")
		require.Equal(t, "notifications/progress", method)
		got = append(got, string(params))
	}
	_, err := h(t.Context(), req)
	returned = true
	require.NoError(t, err)
	require.Len(t, got, 100)
	for i := range got {
		require.Equal(t, strconv.Itoa(i), got[i])
	}
}

// concurrent checks that concurrent calls get their own results.
func concurrent(t *testing.T, stage call.Stage) {
	h := stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
		time.Sleep(time.Millisecond)
		return &call.Result{Raw: req.Params}, nil
	})
	var all sync.WaitGroup
	faults := make(chan error, 640)
	for who := range 16 {
		for n := range 40 {
			all.Go(func() {
				req := Request("caller "+strconv.Itoa(who), `{"who":`+strconv.Itoa(who)+`,"n":`+strconv.Itoa(n)+`}`)
				res, err := h(t.Context(), req)
				if err != nil || string(res.Raw) != string(req.Params) {
					faults <- fmt.Errorf("caller %d call %d: %v, %w", who, n, res, err)
				}
			})
		}
	}
	all.Wait()
	close(faults)
	for err := range faults {
		require.NoError(t, err)
	}
}

// memory checks that the stage keeps no memory for each call.
func memory(t *testing.T, stage call.Stage) {
	h := stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
		return &call.Result{Raw: append(json.RawMessage(nil), req.Params...)}, nil
	})
	text := `"` + strings.Repeat("x", 2048) + `"`
	run := func(n int) {
		for i := range n {
			id := strconv.Itoa(i)
			_, err := h(t.Context(), Request(id, `{"n":`+id+`,"text":`+text+`}`))
			require.NoError(t, err)
		}
	}
	run(200)
	time.Sleep(time.Second) // what a stage does later may be done now
	synctest.Wait()
	before := live()
	run(1500) // three megabytes of arguments and as much of results
	time.Sleep(time.Second)
	synctest.Wait()
	require.Less(t, live()-before, int64(2<<20), "bytes kept of 1500 calls")
}

// live returns the bytes of live objects.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Bench measures what a stage adds to a call of 64 bytes.
func Bench(b *testing.B, stage call.Stage) {
	res := Text("x")
	h := stage(func(context.Context, *call.Request) (*call.Result, error) { return res, nil })
	tool := Tool()
	req := Request("a", `{"text":"0123456789012345678901234567890123456789012345678901"}`)
	b.ReportAllocs()
	for b.Loop() {
		r := call.Request{Tool: tool, Params: req.Params, Caller: req.Caller}
		if _, err := h(b.Context(), &r); err != nil {
			b.Fatal(err)
		}
	}
}
