package approve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// life is everything that goes on over one store, through any number of
// processes that are killed.
type life struct {
	shelf    shelf
	clock    *clock
	ran      atomic.Int64    // executions of the tool
	begun    atomic.Int64    // first rounds of it
	approved map[string]bool // ids, as the store has them
}

// host is a process: a stage and a handler that runs the tool.
func (l *life) host(f *fate) call.Handler {
	book := &approve.Store{Keys: mortal{&l.shelf, f}, Now: l.clock.now}
	stage := approve.New(approve.Config{}, book, func(context.Context, *call.Request) error { return nil })
	return stage.Stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
		f.step(func() {
			l.ran.Add(1)
			req.Dispatched.Store(true)
		})
		return text("done"), nil
	})
}

// alive runs f in a goroutine that may be killed, and reports whether it was
// not.
func alive(f func()) bool {
	done, ok := make(chan struct{}), false
	go func() {
		defer close(done)
		f()
		ok = true
	}()
	<-done
	return ok
}

// pendingOf is what an answer waits for.
func pendingOf(err error) (string, bool) {
	var p *call.PendingError
	if !errors.As(err, &p) {
		return "", false
	}
	return p.Pending.ID, true
}

// decide approves a request in a process of its own; who was killed and tries
// again finds that it was done, or does it.
func (l *life) decide(t *testing.T, f *fate, id string) bool {
	return alive(func() {
		book := &approve.Store{Keys: mortal{&l.shelf, f}, Now: l.clock.now}
		_, err := book.Decide(t.Context(), id, approve.Decision{Approve: true, By: "me"})
		if err != nil && !toolerr.Is(err, toolerr.Conflict) {
			t.Error(err)
		}
	})
}

// note remembers which requests were ever approved.
func (l *life) note(t *testing.T) {
	book := &approve.Store{Keys: &l.shelf, Now: l.clock.now}
	all, err := book.List(t.Context())
	require.NoError(t, err)
	for _, r := range all {
		if !r.At.IsZero() {
			l.approved[r.ID] = true
		}
	}
}

// story is a call that is made, approved by somebody, and made again; with ask
// it is approved by the caller's client. It reports whether nobody was killed.
func (l *life) story(t *testing.T, f *fate, ask bool) bool {
	req := request(`{"x":1}`)
	if ask {
		req.Caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
		req.Ask = func(context.Context, string, json.RawMessage) (answer json.RawMessage, err error) {
			f.step(func() { answer = json.RawMessage(`{"action":"accept","content":{"decision":"approve"}}`) })
			return answer, nil
		}
	}
	for {
		var err error
		if !alive(func() { _, err = l.host(f)(t.Context(), req) }) {
			return false
		}
		id, waits := pendingOf(err)
		if !waits {
			require.NoError(t, err)
			return true
		}
		if !l.decide(t, f, id) {
			return false
		}
		l.note(t)
	}
}

// A process that is killed at any step, before or after it, leaves a state
// from which it goes on: nothing that waited is lost, what is approved once
// runs at most once, and the call is carried out in the end.
func TestKilledAtEveryStep(t *testing.T) {
	for _, ask := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for _, pause := range []time.Duration{0, time.Minute, 10 * time.Minute} {
				steps := 0
				for at := 1; ; at++ {
					l := &life{clock: newClock(), approved: map[string]bool{}}
					first := &fate{at: at, after: after}
					whole := l.story(t, first, ask)
					l.note(t)
					l.clock.advance(pause)
					l.recover(t, fmt.Sprintf("ask %v, killed at step %d, after it %v, back after %v", ask, at, after, pause))
					if whole {
						require.Greater(t, at, 6, "there are steps at which it could be killed")
						steps = at
						break
					}
				}
				require.Less(t, steps, 60)
			}
		}
	}
}

// The same for a modern client's call in two rounds: a host that is killed in
// the first leaves nothing that could be gone on with but by its own state.
func TestKilledBetweenRounds(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			l := &life{clock: newClock(), approved: map[string]bool{}}
			f := &fate{at: at, after: after}
			begun := l.rounds(t, f)
			l.note(t)
			when := fmt.Sprintf("killed at step %d, after it %v", at, after)
			for range 8 {
				if _, err := l.roundsHost(&fate{})(t.Context(), round("")); err == nil {
					break
				} else if id, waits := pendingOf(err); waits {
					require.True(t, l.decide(t, &fate{}, id), when)
				} else {
					require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%s: %v", when, err)
					l.clock.advance(31 * time.Second)
				}
				l.note(t)
			}
			require.LessOrEqual(t, int(l.begun.Load()), len(l.approved), when)
			require.LessOrEqual(t, int(l.ran.Load()), int(l.begun.Load()), when)
			_, err := l.roundsHost(&fate{})(t.Context(), round("x"))
			require.NoError(t, err, when)
			if begun {
				require.Greater(t, at, 10)
				break
			}
		}
	}
}

// roundsHost is a process whose server asks before it does anything.
func (l *life) roundsHost(f *fate) call.Handler {
	book := &approve.Store{Keys: mortal{&l.shelf, f}, Now: l.clock.now}
	stage := approve.New(approve.Config{}, book, func(context.Context, *call.Request) error { return nil })
	return stage.Stage(func(_ context.Context, req *call.Request) (res *call.Result, err error) {
		f.step(func() {
			req.Dispatched.Store(true)
			if strings.Contains(string(req.Params), "requestState") {
				l.ran.Add(1)
				res = text("done")
				return
			}
			l.begun.Add(1)
			res = &call.Result{Raw: json.RawMessage(`{"resultType":"input_required","inputRequests":{},"requestState":"x"}`)}
		})
		return res, nil
	})
}

// rounds is a call in two rounds. It reports whether nobody was killed.
func (l *life) rounds(t *testing.T, f *fate) bool {
	for state := ""; ; {
		var err error
		if !alive(func() { _, err = l.roundsHost(f)(t.Context(), round(state)) }) {
			return false
		}
		id, waits := pendingOf(err)
		switch {
		case waits:
			if !l.decide(t, f, id) {
				return false
			}
			l.note(t)
		case state != "":
			require.NoError(t, err)
			return true
		default:
			require.NoError(t, err)
			state = "x"
		}
	}
}

// Deciders, callers, expiry and hosts that are killed, all at once and at
// random: nothing runs more often than it was approved, and none that was
// decided is decided on again.
func TestAllAtOnce(t *testing.T) {
	for seed := range uint64(6) {
		l := &life{clock: newClock()}
		var decided sync.Map
		var approved atomic.Int64
		var all sync.WaitGroup
		for n := range uint64(8) {
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, n))
				for range 60 {
					f := &fate{at: random.IntN(25), after: random.IntN(2) == 0} // 0: not killed
					switch random.IntN(8) {
					case 0:
						l.clock.advance(time.Duration(random.IntN(200)) * time.Second)
					case 1, 2, 3:
						book := &approve.Store{Keys: mortal{&l.shelf, f}, Now: l.clock.now}
						alive(func() {
							open, err := book.List(t.Context())
							if err != nil || len(open) == 0 {
								return
							}
							id := open[random.IntN(len(open))].ID
							yes := random.IntN(3) > 0
							// Counted before, since who is killed after it has decided.
							if yes {
								approved.Add(1)
							}
							if _, err := book.Decide(t.Context(), id, approve.Decision{Approve: yes}); err == nil {
								if _, twice := decided.LoadOrStore(id, true); twice {
									t.Errorf("%s was decided on twice", id)
								}
							} else if yes {
								approved.Add(-1)
							}
						})
					default:
						alive(func() { l.host(f)(t.Context(), request(fmt.Sprintf(`{"n":%d}`, random.IntN(3)))) }) //nolint:errcheck // whatever it says
					}
				}
			})
		}
		all.Wait()
		require.LessOrEqual(t, l.ran.Load(), approved.Load())
	}
}

// recover goes on after a kill, as callers and deciders do.
func (l *life) recover(t *testing.T, when string) {
	before := l.ran.Load()
	book := &approve.Store{Keys: &l.shelf, Now: l.clock.now}
	whole := &fate{}
	for range 5 {
		_, err := l.host(whole)(t.Context(), request(`{"x":1}`))
		l.note(t)
		require.LessOrEqual(t, int(l.ran.Load()), len(l.approved), when)
		if err == nil {
			require.Equal(t, before+1, l.ran.Load(), when)
			return
		}
		id, waits := pendingOf(err)
		if !waits { // the run of who was killed is not given up yet
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%s: %v", when, err)
			l.clock.advance(31 * time.Second)
			continue
		}
		r, err := book.Find(t.Context(), id)
		require.NoError(t, err, when)
		require.Equal(t, approve.Pending, r.StateAt(l.clock.now()), when)
		if before > 0 && len(l.approved) == 1 && r.Created.Equal(l.clock.now()) {
			for id := range l.approved {
				if old, err := book.Find(t.Context(), id); err == nil && old.State == approve.Running {
					require.Contains(t, r.Reason, "may have had its effect", when)
				}
			}
		}
		require.True(t, l.decide(t, whole, id), when)
		l.note(t)
	}
	require.Fail(t, "the call was never carried out", when)
}
