package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestStage(t *testing.T) {
	stagetest.Run(t, func(t *testing.T) (call.Stage, func()) {
		cfg := audit.Config{Dir: t.TempDir()}
		l := audit.New(cfg, audit.NewFiles(cfg))
		return l.Stage, func() { require.NoError(t, l.Close()) }
	})
}

func BenchmarkStage(b *testing.B) {
	cfg := audit.Config{Dir: b.TempDir()}
	l := audit.New(cfg, audit.NewFiles(cfg))
	stagetest.Bench(b, l.Stage)
	require.NoError(b, l.Close())
}

// events reads the log back.
func events(t *testing.T, dir string) []audit.Event {
	t.Helper()
	var all []audit.Event
	skipped, err := audit.Read(dir, time.Time{}, func(e audit.Event) { all = append(all, e) })
	require.NoError(t, err)
	require.Zero(t, skipped)
	return all
}

func TestEveryCallIsWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := audit.Config{Dir: filepath.Join(t.TempDir(), "audit")}
		l := audit.New(cfg, audit.NewFiles(cfg))
		for _, c := range []struct {
			res *call.Result
			err error
		}{
			{stagetest.Text("fine"), nil},
			{&call.Result{Raw: []byte(`{"content":[],"isError":true}`)}, nil},
			{nil, &call.TimeoutError{Tool: "srv__echo", After: time.Second}},
		} {
			h := l.Stage(func(context.Context, *call.Request) (*call.Result, error) {
				time.Sleep(1500 * time.Millisecond)
				return c.res, c.err
			})
			h(t.Context(), stagetest.Request("a session", `{"path":"x","password":"hunter2"}`)) //nolint:errcheck // it passes what it was given
		}
		require.NoError(t, l.Close())

		got := events(t, cfg.Dir)
		require.Len(t, got, 6)
		var names []string
		for _, e := range got {
			names = append(names, e.Event)
			require.Equal(t, "srv__echo", e.Tool)
			require.Equal(t, "srv", e.Server)
		}
		require.Equal(t, []string{
			"tool.call.started", "tool.call.completed", "tool.call.started", "tool.call.completed", "tool.call.started", "tool.call.failed",
		}, names)
		require.Equal(t, got[0].ID, got[1].ID)
		require.NotEqual(t, got[0].ID, got[2].ID)
		require.Equal(t, 1500*time.Millisecond, got[1].Time.Sub(got[0].Time))
		require.JSONEq(t, `{"path":"x","password":"***"}`, string(got[0].Args))
		require.Regexp(t, `^http/[0-9a-f]{8}$`, got[0].Caller, "a session's id is not shown")
		require.Equal(t, 1500.0, got[1].Millis)
		require.EqualValues(t, len(stagetest.Text("fine").Raw), got[1].Bytes)
		require.False(t, got[1].IsError)
		require.True(t, got[3].IsError)
		require.Equal(t, "TIMEOUT", got[5].Code)
		require.Contains(t, got[5].Error, "did not answer within 1s")

		text, err := os.ReadFile(filepath.Join(cfg.Dir, "audit-"+got[0].Time.UTC().Format(time.DateOnly)+".jsonl"))
		require.NoError(t, err)
		require.NotContains(t, string(text), "hunter2")
		require.NotContains(t, string(text), "a session")
		info, err := os.Stat(cfg.Dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	})
}

// The log's times of start and end show how long a person was asked; the milliseconds do not.
func TestWaitingForAPersonIsNotTheCallsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := audit.Config{Dir: filepath.Join(t.TempDir(), "audit")}
		l := audit.New(cfg, audit.NewFiles(cfg))
		h := l.Stage(func(ctx context.Context, _ *call.Request) (*call.Result, error) {
			resume := call.PauseClocks(ctx)
			time.Sleep(time.Hour)
			resume()
			time.Sleep(20 * time.Millisecond)
			return stagetest.Text("fine"), nil
		})
		_, err := h(t.Context(), stagetest.Request("a", `{}`))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		got := events(t, cfg.Dir)
		require.Equal(t, 20.0, got[1].Millis)
		require.Equal(t, time.Hour+20*time.Millisecond, got[1].Time.Sub(got[0].Time))
	})
}

func TestNothingIsMadeBeforeTheFirstCall(t *testing.T) {
	cfg := audit.Config{Dir: filepath.Join(t.TempDir(), "audit")}
	l := audit.New(cfg, audit.NewFiles(cfg))
	require.NoError(t, l.Close())
	require.NoDirExists(t, cfg.Dir)
}

// sink is one that can be slow or broken.
type sink struct {
	mu     sync.Mutex
	err    error
	lines  []string
	syncs  int
	gate   chan struct{} // nil: open
	closed bool
}

func (s *sink) Append(ctx context.Context, records ...[]byte) error {
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	for _, r := range records {
		if !json.Valid(r) {
			return errors.New("not JSON: " + string(r))
		}
		s.lines = append(s.lines, string(r))
	}
	return nil
}

func (s *sink) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncs++
	return nil
}

func (s *sink) Close() error {
	s.closed = true
	return nil
}

func (s *sink) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *sink) count() (lines, syncs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines), s.syncs
}

func answer(context.Context, *call.Request) (*call.Result, error) { return stagetest.Text("x"), nil }

func TestRecordsAreWrittenSoonAndSyncedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		l := audit.New(audit.Config{}, s)
		h := l.Stage(answer)
		for n := 1; n <= 30; n++ {
			_, err := h(t.Context(), stagetest.Request("a", `{}`))
			require.NoError(t, err)
			time.Sleep(11 * time.Millisecond)
			synctest.Wait()
			lines, _ := s.count()
			require.Equal(t, 2*n, lines, "what was handed over is with the sink")
			time.Sleep(89 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		_, syncs := s.count()
		require.LessOrEqual(t, syncs, 4)
		require.GreaterOrEqual(t, syncs, 3)
		require.NoError(t, l.Close())
		require.True(t, s.closed)
	})
}

func TestCallsWaitForASlowWriterAndNothingIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{gate: make(chan struct{})}
		l := audit.New(audit.Config{}, s)
		running := 0
		var mu sync.Mutex
		h := l.Stage(func(context.Context, *call.Request) (*call.Result, error) {
			mu.Lock()
			running++
			mu.Unlock()
			return stagetest.Text("x"), nil
		})
		large := `{"text":"` + strings.Repeat("x", 1<<18) + `"}`
		var all sync.WaitGroup
		for range 120 {
			all.Go(func() {
				_, err := h(t.Context(), stagetest.Request("a", large))
				require.NoError(t, err)
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		synctest.Wait()
		mu.Lock()
		require.Less(t, running, 80, "the buffer is bounded, and what is being written")
		mu.Unlock()
		_, err := h(ctx, stagetest.Request("a", large))
		require.ErrorIs(t, err, context.DeadlineExceeded, "a call that waits can be cancelled")
		close(s.gate)
		all.Wait()
		require.NoError(t, l.Close())
		require.Len(t, s.lines, 240)
		lost, err := l.Lost()
		require.Zero(t, lost)
		require.NoError(t, err)
	})
}

func TestWhatIsLostIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		l := audit.New(audit.Config{}, s)
		var faults []error
		l.OnFault(func(err error) { faults = append(faults, err) })
		h := l.Stage(answer)
		full := errors.New("no space left")
		s.breaks(full)
		for range 3 {
			_, err := h(t.Context(), stagetest.Request("a", `{}`))
			require.NoError(t, err, "calls go on")
			time.Sleep(11 * time.Millisecond)
			synctest.Wait()
		}
		lost, err := l.Lost()
		require.Equal(t, 6, lost)
		require.ErrorIs(t, err, full)
		require.Equal(t, []error{full}, faults, "it is told once")
		s.breaks(nil)
		_, err = h(t.Context(), stagetest.Request("a", `{}`))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		var said []string
		for _, line := range s.lines {
			if strings.Contains(line, "audit.lost") {
				said = append(said, line)
			}
		}
		require.Len(t, said, 1)
		require.Contains(t, said[0], `"records":6,"error":"no space left"`)
	})
}

func TestWithRequiredNoCallGoesUnrecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		l := audit.New(audit.Config{Required: true}, s)
		h := l.Stage(answer)
		s.breaks(errors.New("no space left"))
		_, err := h(t.Context(), stagetest.Request("a", `{}`))
		require.NoError(t, err, "nothing was known of it yet")
		time.Sleep(11 * time.Millisecond)
		synctest.Wait()
		_, err = h(t.Context(), stagetest.Request("a", `{}`))
		require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))
		require.ErrorContains(t, err, "calls are refused while the audit log cannot be written: no space left")
		s.breaks(nil)
		time.Sleep(1100 * time.Millisecond)
		_, err = h(t.Context(), stagetest.Request("a", `{}`))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.Len(t, s.lines, 4, "what waited was written after all")

		s.breaks(errors.New("no space left"))
		l = audit.New(audit.Config{Required: true}, s)
		_, err = l.Stage(answer)(t.Context(), stagetest.Request("a", `{}`))
		require.NoError(t, err)
		require.Error(t, l.Close(), "Close does not wait for ever")
	})
}

func TestAClosedLogRefuses(t *testing.T) {
	l := audit.New(audit.Config{}, &sink{})
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err := l.Stage(answer)(t.Context(), stagetest.Request("a", `{}`))
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
}

func TestConfig(t *testing.T) {
	require.NoError(t, audit.Config{}.Validate())
	require.EqualError(t, audit.Config{Keep: -1}.Validate(), "audit: keep must not be negative, got -1")
	require.EqualError(t, audit.Config{Off: true, Required: true}.Validate(), "audit: it cannot be off and required")
}

func TestFilesAreBoundedInSizeAndAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		other := filepath.Join(dir, "audit-notes.txt")
		require.NoError(t, os.WriteFile(other, nil, 0o600))
		cfg := audit.Config{Dir: dir, FileSize: 1000, Keep: 5000, Age: 48 * time.Hour}
		f := audit.NewFiles(cfg)
		line := []byte(`{"event":"x","text":"` + strings.Repeat("x", 80) + `"}`) // 100 bytes and some with the end
		for range 100 {
			require.NoError(t, f.Append(t.Context(), line))
		}
		sizes := func() (names []string, total int64) {
			entries, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
			require.NoError(t, err)
			for _, name := range entries {
				info, err := os.Stat(name)
				require.NoError(t, err)
				require.Less(t, info.Size(), int64(1200))
				require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
				names, total = append(names, filepath.Base(name)), total+info.Size()
			}
			return names, total
		}
		names, total := sizes()
		require.LessOrEqual(t, total, int64(5000))
		require.Greater(t, len(names), 2)
		for range 4 {
			time.Sleep(24 * time.Hour)
			require.NoError(t, f.Append(t.Context(), line))
		}
		names, _ = sizes()
		require.Equal(t, []string{"audit-2000-01-03.jsonl", "audit-2000-01-04.jsonl", "audit-2000-01-05.jsonl"}, names)
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
		require.FileExists(t, other)
	})
}

// The newest is kept, whoever wrote it and however often hosts are started: a host goes
// on where the last file is, although those before it have been removed.
func TestTheNewestIsKept(t *testing.T) {
	cfg := audit.Config{Dir: t.TempDir(), FileSize: 100, Keep: 400}
	number := func(n int) []byte {
		return fmt.Appendf(nil, `{"event":"x","id":"%d","text":"%s"}`, n, strings.Repeat("x", 30))
	}
	const last = 1_200 // over the three digits of a file's number
	for n := 1; n <= last; n++ {
		f := audit.NewFiles(cfg)
		require.NoError(t, f.Append(t.Context(), number(n)))
		require.NoError(t, f.Close())
	}
	var got []string
	_, err := audit.Read(cfg.Dir, time.Time{}, func(e audit.Event) { got = append(got, e.ID) })
	require.NoError(t, err)
	require.Greater(t, len(got), 4)
	for i, id := range got {
		require.Equal(t, strconv.Itoa(last-len(got)+1+i), id, "%v", got)
	}
}

// A file that another host has removed, since it is old, is not written to any more.
func TestWhatAnotherHostRemovesIsNotWrittenTo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open cannot be removed there")
	}
	cfg := audit.Config{Dir: t.TempDir(), FileSize: 100, Keep: 400}
	quiet, busy := audit.NewFiles(cfg), audit.NewFiles(cfg)
	line := func(text string) []byte {
		return fmt.Appendf(nil, `{"event":"%s","text":"%s"}`, text, strings.Repeat("x", 30))
	}
	require.NoError(t, quiet.Append(t.Context(), line("first")))
	for range 50 {
		require.NoError(t, busy.Append(t.Context(), line("busy")))
	}
	require.NoError(t, quiet.Append(t.Context(), line("second")))
	require.NoError(t, busy.Append(t.Context(), line("third")))
	require.NoError(t, errors.Join(quiet.Close(), busy.Close()))
	var got []string
	skipped, err := audit.Read(cfg.Dir, time.Time{}, func(e audit.Event) { got = append(got, e.Event) })
	require.NoError(t, err)
	require.Zero(t, skipped)
	require.NotContains(t, got, "first")
	require.Equal(t, []string{"second", "third"}, got[len(got)-2:])
}

func TestATornLineDoesNotSpoilTheNext(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "audit-"+time.Now().UTC().Format(time.DateOnly)+".jsonl")
	require.NoError(t, os.WriteFile(name, []byte(`{"event":"a"}`+"\n"+`{"event":"b","to`), 0o600))
	f := audit.NewFiles(audit.Config{Dir: dir})
	require.NoError(t, f.Append(t.Context(), []byte(`{"event":"c"}`), []byte(`{"event":"d"}`)))
	require.NoError(t, f.Close())
	var got []string
	skipped, err := audit.Read(dir, time.Time{}, func(e audit.Event) { got = append(got, e.Event) })
	require.NoError(t, err)
	require.Equal(t, 1, skipped)
	require.Equal(t, []string{"a", "c", "d"}, got)

	got = nil
	_, err = audit.Read(filepath.Join(dir, "nowhere"), time.Time{}, func(e audit.Event) { got = append(got, e.Event) })
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestAFileThatIsNoneIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "audit-"+time.Now().UTC().Format(time.DateOnly)+".jsonl"), 0o700))
	f := audit.NewFiles(audit.Config{Dir: dir})
	require.Error(t, f.Append(t.Context(), []byte(`{}`)))
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func TestSeveralHostsWriteToOneDirectory(t *testing.T) {
	cfg := audit.Config{Dir: t.TempDir(), FileSize: 4000}
	var all sync.WaitGroup
	for host := range 4 {
		l := audit.New(cfg, audit.NewFiles(cfg))
		all.Go(func() {
			h := l.Stage(answer)
			for range 50 {
				if _, err := h(t.Context(), stagetest.Request(strconv.Itoa(host), `{}`)); err != nil {
					t.Error(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Len(t, events(t, cfg.Dir), 400)
}
