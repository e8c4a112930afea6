package limit_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestStage(t *testing.T) {
	stagetest.Run(t, func(*testing.T) (call.Stage, func()) {
		return limit.New(limit.Config{MaxParallel: 3}).Stage, func() {}
	})
}

func BenchmarkStage(b *testing.B) { stagetest.Bench(b, limit.New(limit.Config{}).Stage) }

// server runs calls that take what their arguments say, and keeps count.
type server struct {
	mu    sync.Mutex
	by    map[string]int // running
	most  map[string]int
	all   int
	peak  int
	order []string
}

func newServer() *server { return &server{by: map[string]int{}, most: map[string]int{}} }

func (s *server) handler(ctx context.Context, req *call.Request) (*call.Result, error) {
	id := req.Caller.ID
	s.mu.Lock()
	s.by[id]++
	s.all++
	s.most[id], s.peak = max(s.most[id], s.by[id]), max(s.peak, s.all)
	s.order = append(s.order, id+" "+string(req.Params))
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.by[id]--
		s.all--
		s.mu.Unlock()
	}()
	d, err := time.ParseDuration(req.Tool.Original)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(d):
		return stagetest.Text("done"), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// of is call number n of a caller that takes d.
func of(id string, n int, d time.Duration) *call.Request {
	return &call.Request{
		Tool:   &call.Tool{Name: "s__t", Server: "s", Original: d.String()},
		Params: []byte(strconv.Itoa(n)), Caller: call.Caller{EntryPoint: "http", ID: id},
	}
}

func TestAFloodDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h := limit.New(limit.Config{}).Stage(s.handler)
		var flood sync.WaitGroup
		for n := range 500 {
			flood.Go(func() {
				_, err := h(t.Context(), of("flood", n, 100*time.Millisecond))
				require.NoError(t, err)
			})
		}
		synctest.Wait()
		s.mu.Lock()
		require.Equal(t, 5, s.most["flood"], "alone it gets all permits")
		s.mu.Unlock()

		// The other one calls now and then, for as long as the flood lasts.
		var waited []time.Duration
		for n := range 200 {
			begin := time.Now()
			_, err := h(t.Context(), of("other", n, time.Millisecond))
			require.NoError(t, err)
			waited = append(waited, time.Since(begin))
			s.mu.Lock()
			require.LessOrEqual(t, s.by["flood"], 4, "one permit is kept for the other")
			require.NotZero(t, s.by["flood"], "the flood is not starved either")
			s.mu.Unlock()
			time.Sleep(7 * time.Millisecond)
		}
		require.LessOrEqual(t, waited[0], 101*time.Millisecond, "the first waits for one of the flood's calls")
		for n, d := range waited[1:] {
			require.Equal(t, time.Millisecond, d, "call %d runs at once", n+1)
		}
		flood.Wait()
		require.Equal(t, 5, s.peak)
	})
}

// So does one by many connections, each of which is a caller of its own, but
// all of one address.
func TestAFloodByManyDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h := limit.New(limit.Config{}).Stage(s.handler)
		ctx, end := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		for n := range 200 {
			flood.Go(func() {
				for ctx.Err() == nil {
					req := of(fmt.Sprint(n), n, 100*time.Millisecond)
					req.Caller.Account = "flood"
					h(ctx, req) //nolint:errcheck // it ends
				}
			})
		}
		time.Sleep(time.Second)
		for n := range 50 {
			begin := time.Now()
			_, err := h(t.Context(), of("one", 0, 10*time.Millisecond))
			require.NoError(t, err)
			if n == 0 {
				require.LessOrEqual(t, time.Since(begin), 110*time.Millisecond, "it waits for one of the flood's calls")
			} else {
				require.Equal(t, 10*time.Millisecond, time.Since(begin), "call %d runs at once", n)
			}
			s.mu.Lock()
			require.GreaterOrEqual(t, s.all, 3, "the flood goes on")
			s.mu.Unlock()
			time.Sleep(70 * time.Millisecond)
		}
		end()
		flood.Wait()
	})
}

func TestCallersShareWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h := limit.New(limit.Config{Concurrent: 6}).Stage(s.handler)
		var all sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} {
			for n := range 100 {
				all.Go(func() {
					_, err := h(t.Context(), of(id, n, 10*time.Millisecond))
					require.NoError(t, err)
				})
			}
			synctest.Wait() // so that a is there long before c
		}
		time.Sleep(105 * time.Millisecond)
		s.mu.Lock()
		require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, s.by)
		s.mu.Unlock()
		all.Wait()
		require.Equal(t, 6, s.peak)
	})
}

func TestEachCallerIsServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h := limit.New(limit.Config{Concurrent: 1}).Stage(s.handler)
		var all sync.WaitGroup
		var want []string
		for n := range 5 {
			for _, id := range []string{"a", "b"} {
				all.Go(func() { h(t.Context(), of(id, n, time.Second)) }) //nolint:errcheck // the order tells
				synctest.Wait()
				want = append(want, id+" "+strconv.Itoa(n))
			}
		}
		all.Wait()
		require.Equal(t, want, s.order)
	})
}

func TestAQueueIsBounded(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  limit.Config
		fits int
	}{
		{"calls", limit.Config{Concurrent: 1, Queue: 3}, 4},
		{"bytes", limit.Config{Concurrent: 1, QueueBytes: 2}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				l := limit.New(c.cfg)
				h := l.Stage(s.handler)
				h(t.Context(), of("a", 0, 2*time.Second)) //nolint:errcheck // so that it is known how long one takes
				var all sync.WaitGroup
				for n := range c.fits {
					all.Go(func() {
						_, err := h(t.Context(), of("a", n, 2*time.Second))
						require.NoError(t, err)
					})
					synctest.Wait()
				}
				require.Equal(t, []limit.Load{{Server: "s", Permits: 1, Running: 1, Waiting: c.fits - 1}}, l.Loads())
				_, err := h(t.Context(), of("a", 9, time.Second))
				require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(err))
				require.ErrorContains(t, err, fmt.Sprintf("s__t is busy (1 running, %d of yours waiting); try again in 4s", c.fits-1))
				var refusal *toolerr.Error
				require.ErrorAs(t, err, &refusal)
				require.Equal(t, int64(4000), refusal.Extra()["retryAfterMs"])
				require.EqualValues(t, 1, l.Loads()[0].Refused)
				all.Go(func() {
					_, err := h(t.Context(), of("b", 0, time.Second))
					require.NoError(t, err, "the flood's queue is not the other's")
				})
				all.Wait()
			})
		})
	}
}

func TestWhoWaitsTooLongIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Config{Concurrent: 1, MaxWait: 3 * time.Second})
		h := l.Stage(newServer().handler)
		go h(t.Context(), of("a", 0, 10*time.Second)) //nolint:errcheck // it is in the way
		synctest.Wait()
		begin := time.Now()
		_, err := h(t.Context(), of("b", 0, 0))
		require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(err))
		require.Equal(t, 3*time.Second, time.Since(begin))
		require.Equal(t, []limit.Load{{Server: "s", Permits: 1, Running: 1, Refused: 1}}, l.Loads())
	})
}

func TestACallThatIsCancelledInTheQueueLeavesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		l := limit.New(limit.Config{Concurrent: 2})
		h := l.Stage(s.handler)
		var all sync.WaitGroup
		for n := range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Millisecond)
			all.Go(func() {
				defer cancel()
				h(ctx, of(strconv.Itoa(n%3), n, 5*time.Millisecond)) //nolint:errcheck // some end so, some so
			})
		}
		all.Wait()
		require.Equal(t, 2, s.peak)
		require.Equal(t, []limit.Load{{Server: "s", Permits: 2}}, l.Loads(), "no permit is lost, nobody waits")
		time.Sleep(2 * time.Minute) // until those before do not count as present
		for n := range 2 {
			all.Go(func() {
				_, err := h(t.Context(), of("z", n, time.Second))
				require.NoError(t, err)
			})
		}
		begin := time.Now()
		all.Wait()
		require.Equal(t, time.Second, time.Since(begin))
	})
}

func TestHowManyIsTheConfigurationsThenTheTools(t *testing.T) {
	for _, c := range []struct {
		cfg  limit.Config
		tool call.Traits
		want int
	}{
		{limit.Config{}, call.Traits{}, 5},
		{limit.Config{Concurrent: 7}, call.Traits{}, 7},
		{limit.Config{Concurrent: -1}, call.Traits{}, 400},
		{limit.Config{}, call.Traits{MaxConcurrent: 64}, 64},
		{limit.Config{}, call.Traits{MaxConcurrent: 1 << 40}, 256},
		{limit.Config{Servers: map[string]int{"s": 2}}, call.Traits{MaxConcurrent: 64}, 2},
		{limit.Config{Servers: map[string]int{"s": -1}}, call.Traits{}, 400},
		{limit.Config{Servers: map[string]int{"other": 2}}, call.Traits{}, 5},
		{limit.Config{MaxParallel: 3}, call.Traits{}, 3},
		{limit.Config{}, call.Traits{Control: true}, 400},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			h := limit.New(c.cfg).Stage(s.handler)
			var all sync.WaitGroup
			for n := range 400 {
				req := of("a", n, time.Second)
				req.Tool.Traits = c.tool
				all.Go(func() { h(t.Context(), req) }) //nolint:errcheck // the count tells
			}
			synctest.Wait()
			s.mu.Lock()
			require.Equal(t, c.want, s.peak, "%+v %+v", c.cfg, c.tool)
			s.mu.Unlock()
			all.Wait()
		})
	}
}

func TestAnAgentsCallsDoNotWaitForTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Config{Nested: []string{"agent"}, MaxDepth: 3})
		agent := &call.Tool{Name: "agent", Server: "agent", Traits: call.Traits{MaxConcurrent: 2}}
		var h call.Handler
		h = l.Stage(func(ctx context.Context, req *call.Request) (*call.Result, error) {
			time.Sleep(time.Second)
			inner := &call.Request{Tool: agent, Caller: call.Caller{ID: req.Caller.ID, Depth: req.Caller.Depth + 1}}
			_, err := h(ctx, inner)
			return stagetest.Text("x"), err
		})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				_, err := h(t.Context(), &call.Request{Tool: agent})
				require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err))
				require.EqualError(t, err, "agent is nested in 4 calls, the maximum is 3; continue without it")
			})
		}
		all.Wait()
	})
}

func TestConfig(t *testing.T) {
	require.NoError(t, limit.Config{}.Validate())
	require.EqualError(t, limit.Config{Queue: -2}.Validate(), "limit: queue must not be negative, got -2")
}

// The calls of a tool that speaks for its whole server leave a permit to the
// calls of its other tools by another caller.
func TestToolsOfAServerShareWhatTheServerTakes(t *testing.T) {
	l := limit.New(limit.Config{})
	for _, name := range []string{"srv__a", "srv__b"} {
		tool := &call.Tool{Name: name, Server: "srv", Traits: call.Traits{MaxConcurrent: 64}}
		h := l.Stage(func(context.Context, *call.Request) (*call.Result, error) {
			loads := l.Loads()
			require.Len(t, loads, 1)
			require.Equal(t, limit.Load{Server: "srv", Permits: 64, Running: 1}, loads[0])
			return nil, nil
		})
		_, err := h(t.Context(), &call.Request{Tool: tool})
		require.NoError(t, err)
	}
}
