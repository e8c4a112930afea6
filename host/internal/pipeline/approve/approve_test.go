package approve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func text(s string) *call.Result {
	return &call.Result{Raw: json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, s))}
}

func request(arguments string) *call.Request {
	return &call.Request{
		Tool:   &call.Tool{Name: "s__rm", Server: "s", Original: "rm", Definition: json.RawMessage(`{"name":"s__rm"}`)},
		Params: json.RawMessage(`{"name":"s__rm","arguments":` + arguments + `}`),
		Caller: call.Caller{EntryPoint: "http", ID: "one"}, Reason: "rule 1 asks",
	}
}

// desk is a stage over a store, whose tool answers with its arguments.
type desk struct {
	shelf shelf
	clock *clock
	book  *approve.Store
	call  call.Handler
	ran   atomic.Int64
	fail  func(req *call.Request) error
	check func(*call.Request) error
	stage *approve.Stage
}

func newDesk(t *testing.T, c approve.Config) *desk {
	d := &desk{clock: newClock()}
	d.book = &approve.Store{Keys: &d.shelf, Now: d.clock.now, Expires: c.Expires}
	d.stage = approve.New(c, d.book, func(_ context.Context, req *call.Request) error {
		if d.check != nil {
			return d.check(req)
		}
		return nil
	})
	t.Cleanup(d.stage.Close)
	d.call = d.stage.Stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
		if d.fail != nil {
			if err := d.fail(req); err != nil {
				return nil, err
			}
		}
		d.ran.Add(1)
		req.Dispatched.Store(true)
		args, err := req.Arguments()
		return text(string(args)), err
	})
	return d
}

// waits makes a call that has to be answered that it waits, and returns as
// what.
func (d *desk) waits(t *testing.T, req *call.Request) call.Pending {
	t.Helper()
	res, err := d.call(t.Context(), req)
	require.Equal(t, call.StatusPending, call.StatusOf(res, err))
	var p *call.PendingError
	require.ErrorAs(t, err, &p)
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	return p.Pending
}

func (d *desk) approve(t *testing.T, id string) {
	t.Helper()
	_, err := d.book.Decide(t.Context(), id, approve.Decision{Approve: true, By: "me"})
	require.NoError(t, err)
}

func TestACallWaitsAndRunsOnceApproved(t *testing.T) {
	d := newDesk(t, approve.Config{PublicURL: "https://host"})
	p := d.waits(t, request(`{"path":"a","n":1}`))
	require.Equal(t, call.Pending{
		ID: p.ID, Reason: "rule 1 asks", Tool: "s__rm", Args: json.RawMessage(`{"path":"a","n":1}`), ExpiresAt: d.clock.now().Add(5 * time.Minute),
		CallbackURL: "https://host/v1/approvals/" + p.ID, Message: p.Message,
		Metadata: map[string]any{"server": "s", "entry_point": "http", "created": d.clock.now()},
	}, p)
	require.Contains(t, p.Message, "mcp-host approvals approve "+p.ID)
	require.Equal(t, p.ID, d.waits(t, request(`{ "n":1, "path":"\u0061" }`)).ID, "the same call is the same request")
	ordered := request(`{"path":"a","n":1}`)
	tool := *ordered.Tool
	tool.Definition, ordered.Tool = json.RawMessage(`{ "n\u0061me":"s__rm"}`), &tool
	require.Equal(t, p.ID, d.waits(t, ordered).ID, "so is the same definition")
	for name, other := range map[string]func(*call.Request){
		"arguments":   func(r *call.Request) { r.Params = json.RawMessage(`{"arguments":{"path":"a","n":2}}`) },
		"definition":  func(r *call.Request) { tool := *r.Tool; tool.Definition = json.RawMessage(`{}`); r.Tool = &tool },
		"server":      func(r *call.Request) { tool := *r.Tool; tool.Server = "t"; r.Tool = &tool },
		"entry_point": func(r *call.Request) { r.Caller.EntryPoint = "stdio" },
		"profile":     func(r *call.Request) { r.Caller.Profile = "p" },
		"user":        func(r *call.Request) { r.Caller.User = "bob" },
		"subject":     func(r *call.Request) { r.Caller.Subject = "issuer of bob" },
	} {
		req := request(`{"path":"a","n":1}`)
		other(req)
		require.NotEqual(t, p.ID, d.waits(t, req).ID, "another "+name+" is another request")
	}
	d.approve(t, p.ID)
	again := request(`{"n":1,"path":"a"}`)
	again.Caller.ID = "another connection"
	res, err := d.call(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, call.StatusComplete, call.StatusOf(res, err))
	require.Contains(t, string(res.Raw), `{\"path\":\"a\",\"n\":1}`, "what runs is what was shown")
	require.NotEqual(t, p.ID, d.waits(t, request(`{"path":"a","n":1}`)).ID, "once")
	require.EqualValues(t, 1, d.ran.Load())
	_, err = d.book.Decide(t.Context(), p.ID, approve.Decision{Approve: true})
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err), "a decision is not about what came after")
}

func TestArgumentsThatAreNotClearAreRefused(t *testing.T) {
	d := newDesk(t, approve.Config{})
	for _, args := range []string{`{"a":1,"a":2}`, `{"a":{"b":1,"b":1}}`, `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`} {
		_, err := d.call(t.Context(), request(args))
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), args)
	}
	_, err := d.call(t.Context(), request(`{"a":"`+strings.Repeat("x", approve.MaxArgsBytes)+`"}`))
	require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(err))
	require.Empty(t, d.shelf.entries)
}

// A denial that holds once refuses one call; the same call then asks for approval again.
func TestADenialThatHoldsOnce(t *testing.T) {
	d := newDesk(t, approve.Config{})
	p := d.waits(t, request(`{}`))
	_, err := d.book.Decide(t.Context(), p.ID, approve.Decision{By: "me", Once: true})
	require.NoError(t, err)
	_, err = d.call(t.Context(), request(`{}`))
	require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))
	next := d.waits(t, request(`{}`))
	require.NotEqual(t, p.ID, next.ID)
	d.approve(t, next.ID)
	_, err = d.call(t.Context(), request(`{}`))
	require.NoError(t, err)
	require.EqualValues(t, 1, d.ran.Load())
}

func TestRequestsAndDecisionsExpire(t *testing.T) {
	d := newDesk(t, approve.Config{})
	p := d.waits(t, request(`{}`))
	d.clock.advance(5*time.Minute - time.Millisecond)
	require.Equal(t, p.ID, d.waits(t, request(`{}`)).ID)
	d.clock.advance(time.Millisecond)
	_, err := d.book.Decide(t.Context(), p.ID, approve.Decision{Approve: true})
	require.EqualError(t, err, p.ID+" is no longer pending but expired")

	p = d.waits(t, request(`{}`))
	d.approve(t, p.ID)
	d.clock.advance(5 * time.Minute)
	next := d.waits(t, request(`{}`))
	require.NotEqual(t, p.ID, next.ID, "an approval that is not used in time is none")

	_, err = d.book.Decide(t.Context(), next.ID, approve.Decision{By: "him", Note: "too loud"})
	require.NoError(t, err)
	_, err = d.call(t.Context(), request(`{}`))
	require.EqualError(t, err, "s__rm: this call was denied by him: too loud; continue without it")
	require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))
	d.clock.advance(5 * time.Minute)
	d.waits(t, request(`{}`))
	require.Zero(t, d.ran.Load())
}

func TestTheNoteOfAnApprovalReachesTheCaller(t *testing.T) {
	d := newDesk(t, approve.Config{})
	p := d.waits(t, request(`{"path":"a"}`))
	_, err := d.book.Decide(t.Context(), p.ID, approve.Decision{Approve: true, By: "me", Note: "only this once"})
	require.NoError(t, err)
	res, err := d.call(t.Context(), request(`{"path":"a"}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"content":[{"type":"text","text":"{\"path\":\"a\"}"},
		{"type":"text","text":"Approved by me\nNote: only this once"}]}`, string(res.Raw))
}

func TestOtherArgumentsTakeThePlaceOfTheCallers(t *testing.T) {
	d := newDesk(t, approve.Config{})
	p := d.waits(t, request(`{"path":"a"}`))
	_, err := d.book.Decide(t.Context(), p.ID, approve.Decision{Args: json.RawMessage(`{}`)})
	require.Equal(t, toolerr.InvalidInput, toolerr.CodeOf(err))
	_, err = d.book.Decide(t.Context(), p.ID, approve.Decision{Approve: true, By: "me", Args: json.RawMessage(`{"path":"b"}`)})
	require.NoError(t, err)
	res, err := d.call(t.Context(), request(`{"path":"a"}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"content":[{"type":"text","text":"{\"path\":\"b\"}"},
		{"type":"text","text":"Approved by me with changed arguments: {\"path\":\"b\"}"}]}`, string(res.Raw))

	// They are looked at again when the call is made.
	p = d.waits(t, request(`{"path":"a"}`))
	_, err = d.book.Decide(t.Context(), p.ID, approve.Decision{Approve: true, By: "me", Args: json.RawMessage(`{"path":"secret"}`)})
	require.NoError(t, err)
	d.check = func(req *call.Request) error {
		args, err := req.Arguments()
		if err == nil && strings.Contains(string(args), "secret") {
			err = &call.ValidationError{Type: call.PolicyViolation, Tool: req.Tool.Name, Detail: "no"}
		}
		return err
	}
	_, err = d.call(t.Context(), request(`{"path":"a"}`))
	require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))
	d.waits(t, request(`{"path":"a"}`))
	require.EqualValues(t, 1, d.ran.Load())
}

// An approval whose call got to nobody is kept; one whose call may have had an
// effect is used up.
func TestWhatUsesAnApprovalUp(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(*call.Request) error
		kept bool
	}{
		{"the queue is full", func(*call.Request) error { return toolerr.New(toolerr.RateLimited, "busy") }, true},
		{"it broke on the way", func(req *call.Request) error {
			req.Dispatched.Store(true)
			return toolerr.New(toolerr.TransportError, "gone")
		}, false},
	} {
		d := newDesk(t, approve.Config{})
		d.approve(t, d.waits(t, request(`{}`)).ID)
		d.fail = c.fail
		_, err := d.call(t.Context(), request(`{}`))
		require.Error(t, err)
		d.fail = nil
		_, err = d.call(t.Context(), request(`{}`))
		require.Equal(t, c.kept, err == nil, "%s: %v", c.name, err)
	}
}

// A caller that gives up while its call is in the queue has not used it up.
func TestACallerGivesUpInTheQueue(t *testing.T) {
	d := newDesk(t, approve.Config{})
	d.approve(t, d.waits(t, request(`{}`)).ID)
	ctx, giveUp := context.WithCancel(t.Context())
	d.fail = func(*call.Request) error {
		giveUp()
		return ctx.Err()
	}
	_, err := d.call(ctx, request(`{}`))
	require.ErrorIs(t, err, context.Canceled)
	d.fail = nil
	_, err = d.call(t.Context(), request(`{}`))
	require.NoError(t, err)
}

// A call whose own calls wait has not been carried out: its approval holds for
// the same call, made again. A program that says that it waits has run.
func TestACallWithinThatWaits(t *testing.T) {
	for _, resumes := range []bool{true, false} {
		d := newDesk(t, approve.Config{})
		d.approve(t, d.waits(t, request(`{}`)).ID)
		d.fail = func(req *call.Request) error {
			req.Dispatched.Store(true)
			return &call.ExecutionError{Cause: &call.PendingError{Pending: call.Pending{ID: "within"}, Resumes: resumes}}
		}
		_, err := d.call(t.Context(), request(`{}`))
		id, _ := pendingOf(err)
		require.Equal(t, "within", id)
		d.fail = nil
		_, err = d.call(t.Context(), request(`{}`))
		require.Equal(t, resumes, err == nil, "%v", err)
	}
}

// A question that outlasts its request is about the one in its place.
func TestAQuestionOutlastsItsRequest(t *testing.T) {
	d := newDesk(t, approve.Config{Wait: time.Minute})
	req := request(`{}`)
	req.Caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	var next call.Pending
	req.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		d.clock.advance(5 * time.Minute)
		other := approve.New(approve.Config{}, d.book, nil)
		_, err := other.Stage(nil)(t.Context(), request(`{}`))
		var waits *call.PendingError
		require.ErrorAs(t, err, &waits)
		next = waits.Pending
		return json.RawMessage(`{"action":"accept","content":{"decision":"approve"}}`), nil
	}
	p := d.waits(t, req)
	require.Equal(t, next.ID, p.ID)
	require.Zero(t, d.ran.Load(), "the answer was about another request")
}

// What is configured otherwise while somebody thinks is not what was approved.
func TestAPlaceChangesWhileSomebodyThinks(t *testing.T) {
	place := "staging"
	d := newDesk(t, approve.Config{Scope: func(*call.Tool) approve.Scope { return approve.Scope{Identity: []byte(place)} }})
	req := request(`{}`)
	req.Caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	req.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		place = "production"
		return json.RawMessage(`{"action":"accept","content":{"decision":"approve"}}`), nil
	}
	d.waits(t, req)
	require.Zero(t, d.ran.Load())
}

// A caller whose time is over while its call waits is told that it waits.
func TestACallersTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, approve.Config{Wait: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := d.call(ctx, request(`{}`))
		id, waits := pendingOf(err)
		require.True(t, waits, "%v", err)
		d.approve(t, id)
		_, err = d.call(t.Context(), request(`{}`))
		require.NoError(t, err)
	})
}

// A step's approval does not use up the time of the call that it is made in.
func TestWaitingIsNotTheCallsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, approve.Config{Wait: time.Minute})
		ctx, cancel := call.WithTimeout(t.Context(), time.Second, errors.New("late"))
		defer cancel()
		go func() {
			time.Sleep(30 * time.Second)
			all, err := d.book.List(t.Context())
			if err == nil && len(all) == 1 {
				_, err = d.book.Decide(t.Context(), all[0].ID, approve.Decision{Approve: true})
			}
			if err != nil {
				t.Error(err)
			}
		}()
		_, err := d.call(ctx, request(`{}`))
		require.NoError(t, err)
		require.Equal(t, int64(1), d.ran.Load())
	})
}

// Nor does the time in which the client's user is asked.
func TestAQuestionIsNotTheCallsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, approve.Config{})
		ctx, cancel := call.WithTimeout(t.Context(), time.Second, errors.New("late"))
		defer cancel()
		req := request(`{}`)
		req.Caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
		req.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			time.Sleep(time.Minute)
			return json.RawMessage(`{"action":"accept","content":{"decision":"approve"}}`), ctx.Err()
		}
		_, err := d.call(ctx, req)
		require.NoError(t, err)
		require.Equal(t, int64(1), d.ran.Load())
	})
}

// While a call runs its lease is renewed, and the same call is told to wait.
func TestARunIsRenewed(t *testing.T) {
	d := newDesk(t, approve.Config{})
	d.book.Lease = 30 * time.Millisecond // of real time between renewals; the clock stands
	p := d.waits(t, request(`{}`))
	d.approve(t, p.ID)
	d.fail = func(*call.Request) error {
		_, err := d.call(t.Context(), request(`{}`))
		require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "it is under way")
		d.clock.advance(20 * time.Millisecond)
		require.Eventually(t, func() bool {
			r, err := d.book.Find(t.Context(), p.ID)
			return err == nil && r.Expires.Sub(d.clock.now()) == 30*time.Millisecond
		}, time.Minute, time.Millisecond)
		return nil
	}
	_, err := d.call(t.Context(), request(`{}`))
	require.NoError(t, err)
}

// Of a host that has ended during the call nobody knows whether the call had
// its effect: it is asked about anew, and the request says so.
func TestARunThatIsNotRenewedIsGivenUp(t *testing.T) {
	d := newDesk(t, approve.Config{})
	p := d.waits(t, request(`{}`))
	d.approve(t, p.ID)
	d.fail = func(*call.Request) error {
		d.clock.advance(time.Minute) // without a renewal, which would be due in ten real seconds
		again := d.waits(t, request(`{}`))
		require.NotEqual(t, p.ID, again.ID)
		require.Contains(t, again.Reason, "approved before, as "+p.ID)
		return nil
	}
	_, err := d.call(t.Context(), request(`{}`))
	require.NoError(t, err)
	all, err := d.book.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, approve.Pending, all[0].State, "what the first comes to changes nothing")
}

func TestTheClientIsAsked(t *testing.T) {
	for _, c := range []struct {
		name, caps, answer string
		want               toolerr.Code
		asked              bool
	}{
		{"approves", `{"elicitation":{}}`, `{"action":"accept","content":{"decision":"approve"}}`, "", true},
		{"takes forms", `{"elicitation":{"form":{},"url":{}}}`, `{"action":"accept","content":{"decision":"approve"}}`, "", true},
		{"denies", `{"elicitation":{}}`, `{"action":"accept","content":{"decision":"deny","note":"not now"}}`, toolerr.PolicyDenied, true},
		{"declines", `{"elicitation":{}}`, `{"action":"decline"}`, toolerr.PolicyDenied, true},
		{"dismisses", `{"elicitation":{}}`, `{"action":"cancel"}`, toolerr.PendingApproval, true},
		{"accepts nothing", `{"elicitation":{}}`, `{"action":"accept"}`, toolerr.PendingApproval, true},
		{"says what is no answer", `{"elicitation":{}}`, `[]`, toolerr.PendingApproval, true},
		{"fails", `{"elicitation":{}}`, ``, toolerr.PendingApproval, true},
		{"takes addresses alone", `{"elicitation":{"url":{}}}`, ``, toolerr.PendingApproval, false},
		{"takes nothing", `{"sampling":{}}`, ``, toolerr.PendingApproval, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, approve.Config{})
			req := request(`{"path":"a\u202eb"}`)
			req.Caller.Capabilities = json.RawMessage(c.caps)
			asked := false
			req.Ask = func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
				asked = true
				require.Equal(t, "elicitation/create", method)
				require.Contains(t, string(params), `May s__rm of server s be called? rule 1 asks.`)
				require.NotContains(t, string(params), "\u202e")
				if c.answer == "" {
					return nil, errors.New("gone")
				}
				return json.RawMessage(c.answer), nil
			}
			_, err := d.call(t.Context(), req)
			require.Equal(t, c.want, toolerr.CodeOf(err), "%v", err)
			require.Equal(t, c.asked, asked)
			require.Equal(t, c.want == "", d.ran.Load() == 1)
		})
	}
	d := newDesk(t, approve.Config{ClientOff: true})
	req := request(`{}`)
	req.Caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	req.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New("it was asked")
	}
	d.waits(t, req)
}

// Whoever decides elsewhere while the client is asked ends the question.
func TestADecisionElsewhereEndsTheQuestion(t *testing.T) {
	d := newDesk(t, approve.Config{})
	req := request(`{}`)
	req.Caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	req.Ask = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		all, err := d.book.List(t.Context())
		require.NoError(t, err)
		d.approve(t, all[0].ID)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err := d.call(t.Context(), req)
	require.NoError(t, err)

	waiting := newDesk(t, approve.Config{Wait: time.Minute})
	go func() {
		for {
			if all, _ := waiting.book.List(t.Context()); len(all) > 0 {
				waiting.book.Decide(t.Context(), all[0].ID, approve.Decision{Approve: true}) //nolint:errcheck // the call tells
				return
			}
		}
	}()
	_, err = waiting.call(t.Context(), request(`{}`))
	require.NoError(t, err, "with wait the call is held that long")
}

// Of a hundred who decide at once one is first, and of a hundred identical
// calls one runs.
func TestOneOfManyIsFirst(t *testing.T) {
	d := newDesk(t, approve.Config{})
	p := d.waits(t, request(`{}`))
	var first, ran atomic.Int64
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			_, err := d.book.Decide(t.Context(), p.ID, approve.Decision{Approve: true, By: fmt.Sprint(n)})
			if err == nil {
				first.Add(1)
			} else if !toolerr.Is(err, toolerr.Conflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, first.Load())
	for range 100 {
		all.Go(func() {
			if _, err := d.call(t.Context(), request(`{}`)); err == nil {
				ran.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, ran.Load())
	require.EqualValues(t, 1, d.ran.Load())
}

// The person who decides sees the arguments as they are; a decided request
// keeps no credentials.
func TestADecidedRequestKeepsNoCredentials(t *testing.T) {
	const args = `{"path":"a","apiKey":"k-1","oauth":{"x":"k-2"}}`
	for _, approved := range []bool{true, false} {
		d := newDesk(t, approve.Config{})
		p := d.waits(t, request(args))
		require.JSONEq(t, args, string(p.Args))
		if approved {
			d.approve(t, p.ID)
			res, err := d.call(t.Context(), request(args))
			require.NoError(t, err)
			require.Contains(t, string(res.Raw), "k-1", "the tool gets them")
		} else {
			_, err := d.book.Decide(t.Context(), p.ID, approve.Decision{})
			require.NoError(t, err)
		}
		all, err := d.book.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.JSONEq(t, `{"path":"a","apiKey":"***","oauth":"***"}`, string(all[0].Args))
	}
}
