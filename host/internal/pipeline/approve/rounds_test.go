package approve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// round is a modern client's request with the state of the round before.
func round(state string) *call.Request {
	req := request(`{}`)
	req.Caller.Modern = true
	if state != "" {
		req.Params = json.RawMessage(`{"name":"s__rm","arguments":{},"inputResponses":{"q":{}},"requestState":"` + state + `"}`)
	}
	return req
}

// server asks a number of times, with another state each time.
func (d *desk) server(asks int) (h call.Handler, made *int) {
	made = new(int)
	return d.stage.Stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
		req.Dispatched.Store(true)
		if *made++; *made <= asks {
			return &call.Result{Raw: fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{},"requestState":"x%d"}`, *made)}, nil
		}
		return text("done"), nil
	}), made
}

// A modern server that asks for more input has not done the call yet: the
// rounds of one call are one call.
func TestTheRoundsOfACallAreOneCall(t *testing.T) {
	d := newDesk(t, approve.Config{})
	d.approve(t, d.waits(t, round("")).ID)
	do, made := d.server(2)
	for _, state := range []string{"", "x1", "x2"} {
		_, err := do(t.Context(), round(state))
		require.NoError(t, err)
	}
	_, err := do(t.Context(), round("x2"))
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	require.Equal(t, 3, *made)
}

// What was begun is gone on with by who has the state, and by nobody else; nor
// is it begun again.
func TestARoundIsNoOtherCall(t *testing.T) {
	for name, again := range map[string]*call.Request{"begun again": round(""), "another state": round("x7")} {
		d := newDesk(t, approve.Config{})
		p := d.waits(t, round(""))
		d.approve(t, p.ID)
		do, made := d.server(9)
		_, err := do(t.Context(), round(""))
		require.NoError(t, err)
		r, err := d.book.Find(t.Context(), p.ID)
		require.NoError(t, err)
		require.Equal(t, approve.Asking, r.State)
		_, err = do(t.Context(), again)
		require.Equal(t, 1, *made, name)
		if name == "another state" { // which is in nobody's way
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err))
			_, err = do(t.Context(), round("x1"))
			require.NoError(t, err)
			continue
		}
		require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err), name)
		require.ErrorContains(t, err, "its server's question was not answered")
	}
}

// A legacy client has no rounds: whatever a server answers, the call was made.
func TestALegacyCallHasNoRounds(t *testing.T) {
	d := newDesk(t, approve.Config{})
	d.approve(t, d.waits(t, request(`{}`)).ID)
	do, made := d.server(9)
	_, err := do(t.Context(), request(`{}`))
	require.NoError(t, err)
	for range 3 {
		_, err = do(t.Context(), request(`{}`))
		require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	}
	require.Equal(t, 1, *made)
}

// All rounds together have as long as an approval holds, and there are not
// more of them than a bound.
func TestRoundsEnd(t *testing.T) {
	d := newDesk(t, approve.Config{})
	d.approve(t, d.waits(t, round("")).ID)
	do, made := d.server(1000)
	state := ""
	for range 4 {
		_, err := do(t.Context(), round(state))
		require.NoError(t, err)
		state = fmt.Sprintf("x%d", *made)
		d.clock.advance(75 * time.Second)
	}
	_, err := do(t.Context(), round(state))
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err), "no round makes it hold longer")

	d = newDesk(t, approve.Config{})
	d.approve(t, d.waits(t, round("")).ID)
	do, made = d.server(1000)
	for state, err = "", nil; err == nil; state = fmt.Sprintf("x%d", *made) {
		_, err = do(t.Context(), round(state))
	}
	require.Equal(t, 11, *made)
}

// A server that gives no state goes on with the client that it asked.
func TestRoundsWithoutState(t *testing.T) {
	d := newDesk(t, approve.Config{})
	d.approve(t, d.waits(t, round("")).ID)
	made := 0
	do := d.stage.Stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
		req.Dispatched.Store(true)
		if made++; made == 1 {
			return &call.Result{Raw: json.RawMessage(`{"resultType":"input_required","inputRequests":{}}`)}, nil
		}
		return text("done"), nil
	})
	_, err := do(t.Context(), round(""))
	require.NoError(t, err)
	answer := round("")
	answer.Params = json.RawMessage(`{"arguments":{},"inputResponses":{}}`)
	_, err = do(t.Context(), answer)
	require.NoError(t, err)
	require.Equal(t, 2, made)
}

// A round that got to nobody can be made again, for no longer.
func TestARoundThatGotToNobody(t *testing.T) {
	d := newDesk(t, approve.Config{})
	d.approve(t, d.waits(t, round("")).ID)
	busy, made := false, 0
	do := d.stage.Stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
		if busy {
			return nil, toolerr.New(toolerr.RateLimited, "busy")
		}
		req.Dispatched.Store(true)
		if made++; made == 1 {
			return &call.Result{Raw: json.RawMessage(`{"resultType":"input_required","requestState":"x1"}`)}, nil
		}
		return text("done"), nil
	})
	_, err := do(t.Context(), round(""))
	require.NoError(t, err)
	busy = true
	_, err = do(t.Context(), round("x1"))
	require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(err))
	busy = false
	_, err = do(t.Context(), round("x1"))
	require.NoError(t, err)
}

// What is carried out is what was shown, and what is harmless by name.
func TestWhatIsCarriedOutWasShown(t *testing.T) {
	d := newDesk(t, approve.Config{})
	d.approve(t, d.waits(t, request(`{"path":"a"}`)).ID)
	var sent string
	do := d.stage.Stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
		sent = string(req.Params)
		return text("done"), nil
	})
	again := request(`{"path":"a"}`)
	again.Params = json.RawMessage(`{"name":"s__rm","arguments":{"path":"\u0061"},"task":{"ttl":9},"requestState":"x","inputResponses":{"force":true},"more":1,` +
		`"_meta":{"progressToken":7,"traceparent":"00-1","mode":"evil","io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/related-task":{},"toolroom/cache":"bypass"}}`)
	_, err := do(t.Context(), again)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"s__rm","arguments":{"path":"a"},
		"_meta":{"progressToken":7,"traceparent":"00-1","io.modelcontextprotocol/clientInfo":{"name":"c"},"toolroom/cache":"bypass"}}`, sent)
}
