package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// full is the long form of the tests of this file: HOST_CHAOS=1.
func full() bool { return os.Getenv("HOST_CHAOS") != "" }

func either(short, long int) int {
	if full() {
		return long
	}
	return short
}

// fleet is a number of servers with callers of each.
type fleet struct {
	servers []*upstream.Server
	modes   []string // files that say how each starts
	pids    []string // files with the ids of all processes of each
	broken  atomic.Int32
	stop    chan struct{}
	callers sync.WaitGroup

	mu    sync.Mutex
	times map[string][]time.Duration // of the calls of servers that are well, by phase
	phase string
}

func launch(t *testing.T, n int) *fleet {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	spawner := upstream.NewSpawner([]string{self, "guard"})
	f := &fleet{stop: make(chan struct{}), times: map[string][]time.Duration{}, phase: "before"}
	f.broken.Store(-1)
	t.Cleanup(func() {
		var all sync.WaitGroup
		for _, s := range f.servers {
			all.Go(s.Close)
		}
		all.Wait()
		spawner.Close()
	})
	for i := range n {
		mode, pids := filepath.Join(dir, fmt.Sprint("mode", i)), filepath.Join(dir, fmt.Sprint("pids", i))
		era := []string{"legacy", "modern"}[i%2]
		s, err := upstream.New(upstream.Config{
			Name: fmt.Sprint("s", i), Env: os.Environ(), Era: upstream.Era(era),
			Command:      []string{self, faultserver.Arg, "-era", era, "-start", "@" + mode, "-pid", pids},
			StartTimeout: 3 * time.Second, WriteTimeout: time.Second, QuietTime: 1500 * time.Millisecond,
			CloseGrace: 100 * time.Millisecond, TermGrace: 100 * time.Millisecond,
		}, spawner)
		require.NoError(t, err)
		f.servers, f.modes, f.pids = append(f.servers, s), append(f.modes, mode), append(f.pids, pids)
		mustDo(t, s, "fork", `{"text":`+strconv.Quote(pids)+`}`)
	}
	return f
}

// load has two callers of each server call all the time. A call of a server
// that is well must be answered; one of the broken one may fail, with a code
// that says why and long before the caller loses patience.
func (f *fleet) load(t *testing.T) {
	for i, s := range f.servers {
		for range 2 {
			f.callers.Go(func() {
				for {
					select {
					case <-f.stop:
						return
					case <-time.After(time.Duration(either(8, 2)) * time.Millisecond):
					}
					ill := f.broken.Load() == int32(i)
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					begin := time.Now()
					_, err := do(ctx, s, "echo", `{"text":"hello"}`)
					took := time.Since(begin)
					cancel()
					ill = ill || f.broken.Load() == int32(i)
					switch {
					case err == nil && !ill:
						f.mu.Lock()
						f.times[f.phase] = append(f.times[f.phase], took)
						f.mu.Unlock()
					case err != nil && !ill:
						t.Errorf("%s, which is well: %v", s.Name(), err)
					case err != nil && toolerr.CodeOf(err) != toolerr.ServerOffline:
						t.Errorf("%s, which is broken: %v", s.Name(), err)
					}
				}
			})
		}
	}
}

func (f *fleet) begin(phase string) {
	f.mu.Lock()
	f.phase = phase
	f.mu.Unlock()
}

// p99 returns the 99th percentile of a phase's calls, and their number.
func (f *fleet) p99(phase string) (time.Duration, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	times := slices.Clone(f.times[phase])
	slices.Sort(times)
	if len(times) == 0 {
		return 0, 0
	}
	return times[len(times)*99/100], len(times)
}

// breakIn does one kind of harm to a server.
func (f *fleet) breakIn(t *testing.T, kind string, i int) {
	s := f.servers[i]
	signal := func(kill bool) {
		p, err := os.FindProcess(s.Status().PID)
		require.NoError(t, err)
		if kill {
			require.NoError(t, p.Kill())
		} else {
			require.NoError(t, suspend(p))
		}
	}
	tool := func(name, arguments string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := do(ctx, s, name, arguments); err != nil {
			require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err), "%v", err)
		}
	}
	// A signal takes effect when the process is scheduled, which on a busy
	// machine is later.
	until := func(done func() bool) {
		require.Eventually(t, done, 60*time.Second, time.Millisecond, "%s, %s", s.Name(), kind)
	}
	switch kind {
	case "killed":
		before := s.Status().PID
		signal(true)
		until(func() bool { now := s.Status().PID; return now != 0 && now != before })
	case "stopped":
		signal(false)
		until(func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := do(ctx, s, "echo", `{}`)
			return err != nil
		})
	case "flooding":
		tool("flood", fmt.Sprintf(`{"n":%d}`, either(4_000_000, 20_000_000)))
		tool("noise", fmt.Sprintf(`{"n":%d}`, either(20_000, 100_000)))
	case "hanging at start":
		require.NoError(t, os.WriteFile(f.modes[i], []byte("hang"), 0o600))
		signal(true)
		// A caller is told when the start is given up.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.Eventually(t, func() bool {
			_, err := do(ctx, s, "echo", `{}`)
			return err != nil && strings.Contains(err.Error(), "did not answer the handshake")
		}, time.Minute, time.Millisecond)
		require.NoError(t, os.Remove(f.modes[i]))
	case "closing its output":
		tool("close_stdout", `{}`)
	case "not reading":
		tool("stop_reading", `{}`)
		tool("echo", `{"text":"`+strings.Repeat("z", 3<<20)+`"}`)
	}
}

// Each server in turn is broken in each way: the callers of the others see
// nothing of it, those of the broken one are told, and it comes back. In the
// end nobody is left.
func TestABrokenServerHarmsNobodyElse(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no SIGSTOP")
	}
	t.Parallel()
	kinds := []string{"killed", "stopped", "flooding", "hanging at start", "closing its output", "not reading"}
	f := launch(t, either(6, 20))
	t.Run("storm", func(t *testing.T) {
		defer f.callers.Wait()
		defer close(f.stop)
		f.load(t)
		time.Sleep(time.Duration(either(100, 5000)) * time.Millisecond)
		for n, kind := range kinds {
			victims := []int{n % len(f.servers)}
			if full() {
				victims = nil
				for i := range f.servers {
					victims = append(victims, i)
				}
			}
			f.begin(kind)
			for _, i := range victims {
				f.broken.Store(int32(i))
				f.breakIn(t, kind, i)
				require.Eventually(t, func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					_, err := do(ctx, f.servers[i], "echo", `{}`)
					return err == nil && !errors.Is(err, context.DeadlineExceeded)
				}, 60*time.Second, 5*time.Millisecond, "%s does not come back after %s", f.servers[i].Name(), kind)
				f.broken.Store(-1)
			}
		}
	})
	before, n := f.p99("before")
	t.Logf("p99 of the others before: %v (%d calls)", before, n)
	for _, kind := range kinds {
		p, n := f.p99(kind)
		t.Logf("p99 of the others, one %s: %v (%d calls)", kind, p, n)
	}
	var all sync.WaitGroup
	for _, s := range f.servers {
		all.Go(s.Close)
	}
	all.Wait()
	for _, file := range f.pids {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(line)
			require.NoError(t, err)
			requireGone(t, pid, "a process of "+file)
		}
	}
}

// census counts what could leak.
type census struct {
	goroutines, descriptors int
	heap                    uint64
}

func take() census {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c := census{goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc}
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		c.descriptors = len(entries)
	}
	return c
}

func TestRestartsLeakNothing(t *testing.T) {
	stdio := start(t, func(c *upstream.Config) { c.Era = upstream.Legacy })
	web := reach(t, "/mcp", nil, "-era", "legacy")
	library := at(t, "", func(c *upstream.Config) { c.Serve = faultserver.Serve })
	round := func() {
		mustDo(t, stdio, "echo", `{}`)
		_, err := do(t.Context(), stdio, "crash", `{}`)
		require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
		require.NoError(t, stdio.Reconnect(t.Context()))
		for _, s := range []*upstream.Server{stdio, web, library} {
			mustDo(t, s, "echo", `{}`)
			require.NoError(t, s.Reconnect(t.Context()))
			mustDo(t, s, "echo", `{}`)
		}
	}
	for range 3 {
		round()
	}
	settle := func() (c census) {
		last := 0
		eventually(func() bool { // connections that were replaced end a moment later
			now := runtime.NumGoroutine()
			same := now == last
			last = now
			time.Sleep(50 * time.Millisecond)
			return same
		})
		return take()
	}
	before := settle()
	rounds := either(10, 250)
	for range rounds {
		round()
	}
	after := settle()
	t.Logf("%d restarts: %+v, then %+v", 5*rounds, before, after)
	if !eventually(func() bool { after = take(); return after.goroutines <= before.goroutines+2 }) {
		stacks := make([]byte, 1<<20)
		t.Fatalf("%d goroutines before, now:\n%s", before.goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	require.LessOrEqual(t, after.descriptors, before.descriptors+3)
	require.Less(t, after.heap, before.heap+(4<<20))
}
