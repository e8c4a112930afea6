package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// full is the long form of the test of this file: HOST_CHAOS=1.
func full() bool { return os.Getenv("HOST_CHAOS") != "" }

func either[T any](short, long T) T {
	if full() {
		return long
	}
	return short
}

// callTimeout is how long the servers of the storm have for a call.
const callTimeout = 3 * time.Second

// storm is a host in a process of its own, with many servers and callers of
// each over HTTP.
type storm struct {
	t           *testing.T
	host        *exec.Cmd
	url         string
	client      *http.Client
	modes, pids []string // of each server: a file that says how it starts, and one with the ids of its processes
	broken      atomic.Int32
	stop        chan struct{}
	callers     sync.WaitGroup

	mu    sync.Mutex
	phase string
	times map[string][]time.Duration // of the calls of servers that are well
	codes map[string]map[string]int  // what the callers of broken ones were told
	worst map[string]time.Duration   // and how late
}

func raise(t *testing.T, n int) *storm {
	dir := t.TempDir()
	s := &storm{
		t: t, stop: make(chan struct{}), phase: "before", times: map[string][]time.Duration{},
		codes: map[string]map[string]int{}, worst: map[string]time.Duration{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}, Timeout: 2 * time.Minute},
	}
	s.broken.Store(-1)
	servers := map[string]any{}
	for i := range n {
		mode, pids := filepath.Join(dir, fmt.Sprint("mode", i)), filepath.Join(dir, fmt.Sprint("pids", i))
		s.modes, s.pids = append(s.modes, mode), append(s.pids, pids)
		servers[fmt.Sprint("s", i)] = map[string]any{
			"command": "fixture", "args": []string{"-era", []string{"legacy", "modern"}[i%2], "-start", "@" + mode, "-pid", pids},
			"timeout": callTimeout.String(), "start_timeout": "5s",
		}
	}
	config := filepath.Join(dir, "c.json")
	text, err := json.Marshal(map[string]any{"servers": servers})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, text, 0o600))
	s.host = exec.Command("mcp-host", "serve", "--listen", "127.0.0.1:0", "--no-token", "--config", config, "--state", dir)
	out, err := s.host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.host.Start())
	t.Cleanup(func() {
		s.host.Process.Kill() //nolint:errcheck // it has ended where all went well
		s.host.Wait()         //nolint:errcheck
		s.client.CloseIdleConnections()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	s.url = strings.TrimSpace(strings.TrimPrefix(line, "url:"))
	for i := range n {
		require.Empty(t, s.call(i, "fork", map[string]any{"text": s.pids[i]}))
	}
	return s
}

// call makes a call and returns the code of its error, "" if there was none.
func (s *storm) call(server int, tool string, arguments map[string]any) (code string) {
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": fmt.Sprintf("s%d__%s", server, tool), "arguments": arguments},
	})
	if err != nil {
		return err.Error()
	}
	req, err := http.NewRequest(http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	var answer struct {
		Result struct {
			IsError bool
			Meta    map[string]any `json:"_meta"`
		}
		Error json.RawMessage
	}
	switch err := json.Unmarshal(text, &answer); {
	case err != nil || resp.StatusCode != http.StatusOK || answer.Error != nil:
		return resp.Status + " " + string(text)
	case answer.Result.IsError:
		return fmt.Sprint(answer.Result.Meta["toolroom/code"])
	}
	return ""
}

// told is what the callers of a broken server may be told: that it is gone,
// or that it did not answer within its time.
var told = []string{"", "SERVER_OFFLINE", "TIMEOUT"}

// load has two callers of each server call all the time.
func (s *storm) load() {
	for i := range s.modes {
		for range 2 {
			s.callers.Go(func() {
				for {
					select {
					case <-s.stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
					ill := s.broken.Load() == int32(i)
					begin := time.Now()
					code := s.call(i, "echo", map[string]any{"text": "hello"})
					took := time.Since(begin)
					ill = ill || s.broken.Load() == int32(i)
					s.note(i, ill, code, took)
				}
			})
		}
	}
}

func (s *storm) note(server int, ill bool, code string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !ill && code == "":
		s.times[s.phase] = append(s.times[s.phase], took)
	case !ill:
		s.t.Errorf("s%d, which is well: %s", server, code)
	case !slices.Contains(told, code):
		s.t.Errorf("s%d, which is broken: %s", server, code)
	default:
		if s.codes[s.phase] == nil {
			s.codes[s.phase] = map[string]int{}
		}
		s.codes[s.phase][code]++
		s.worst[s.phase] = max(s.worst[s.phase], took)
	}
}

// serverPID is the id of a server's process, 0 when none runs: the last that
// was started and is no grandchild, which the command lines tell apart.
func (s *storm) serverPID(i int) (pid int) {
	text, err := os.ReadFile(s.pids[i])
	require.NoError(s.t, err)
	for line := range strings.FieldsSeq(string(text)) {
		id, err := strconv.Atoi(line)
		require.NoError(s.t, err)
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id))
		if err == nil && bytes.Contains(command, []byte(s.modes[i])) && mcpkittest.IsRunning(id) {
			pid = id
		}
	}
	return pid
}

// breakIn does one kind of harm to a server and waits until a caller was told,
// where there is something to tell.
func (s *storm) breakIn(kind string, i int) {
	before := s.serverPID(i)
	require.Positive(s.t, before, "s%d does not run", i)
	signalled := func(sig syscall.Signal) { require.NoError(s.t, syscall.Kill(before, sig)) }
	failing := func() {
		require.Eventually(s.t, func() bool { return s.call(i, "echo", nil) != "" }, time.Minute, time.Millisecond, "s%d, %s", i, kind)
	}
	switch kind {
	case "killed":
		signalled(syscall.SIGKILL)
	case "stopped":
		signalled(syscall.SIGSTOP)
		failing()
		if !full() || i > 0 { // else the host finds out by itself, in half a minute
			signalled(syscall.SIGKILL)
		}
	case "flooding":
		require.Contains(s.t, told, s.call(i, "flood", map[string]any{"n": either(4_000_000, 20_000_000)}))
		require.Contains(s.t, told, s.call(i, "noise", map[string]any{"n": either(20_000, 100_000)}))
	case "hanging at start":
		require.NoError(s.t, os.WriteFile(s.modes[i], []byte("hang"), 0o600))
		signalled(syscall.SIGKILL)
		require.Eventually(s.t, func() bool { now := s.serverPID(i); return now != 0 && now != before }, time.Minute, 5*time.Millisecond)
		failing()
		require.NoError(s.t, os.Remove(s.modes[i]))
	case "closing its output":
		// The first process has a child that holds the output open, so that it
		// does not end; the next one's does.
		require.Equal(s.t, "SERVER_OFFLINE", s.call(i, "crash", nil))
		require.Eventually(s.t, func() bool { return s.call(i, "close_stdout", nil) == "SERVER_OFFLINE" }, time.Minute, time.Millisecond)
	case "not reading":
		require.Contains(s.t, told, s.call(i, "stop_reading", nil))
		require.NotEmpty(s.t, s.call(i, "echo", map[string]any{"text": strings.Repeat("z", 3<<20)}))
		if !full() || i > 0 { // else the host finds out by itself, in ten seconds
			signalled(syscall.SIGKILL)
		}
	}
}

func (s *storm) begin(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = phase
}

// report logs a phase's figures.
func (s *storm) report(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := slices.Sorted(slices.Values(s.times[phase]))
	if len(times) == 0 {
		s.t.Logf("%s: no calls", phase)
		return
	}
	s.t.Logf("%s: the others p50 %v p99 %v (%d calls); the broken one's callers %v, the last after %v",
		phase, times[len(times)/2], times[len(times)*99/100], len(times), s.codes[phase], s.worst[phase])
}

// held is what a process holds.
func held(t *testing.T, pid int) (descriptors, residentKB int) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rss, _ := strings.Cut(string(status), "VmRSS:")
	_, err = fmt.Sscan(rss, &residentKB)
	require.NoError(t, err)
	return len(entries), residentKB
}

// TestABrokenServerHarmsNobodyElse breaks each server of a host in turn, in
// each way there is: the callers of the others see nothing of it, those of the
// broken one are told so with a code, and it comes back. Then the host is
// killed, and nobody is left.
func TestABrokenServerHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	kinds := []string{"killed", "stopped", "flooding", "hanging at start", "closing its output", "not reading"}
	s := raise(t, either(6, 20))
	fds, rss := held(t, s.host.Process.Pid)
	t.Run("storm", func(t *testing.T) {
		defer s.callers.Wait()
		defer close(s.stop)
		s.load()
		time.Sleep(either(100*time.Millisecond, 10*time.Second))
		for n, kind := range kinds {
			for i := range s.modes {
				if !full() && i != n {
					continue
				}
				s.begin("between")
				time.Sleep(either(0, 500*time.Millisecond))
				s.begin(kind)
				s.broken.Store(int32(i))
				s.breakIn(kind, i)
				require.Eventually(t, func() bool { return s.call(i, "echo", nil) == "" }, 2*time.Minute, 5*time.Millisecond,
					"s%d does not come back after %s", i, kind)
				s.broken.Store(-1)
			}
		}
	})
	for _, phase := range append([]string{"before", "between"}, kinds...) {
		s.report(phase)
	}
	s.restart(either(0, 1000))
	s.client.CloseIdleConnections()
	nowFDs, nowRSS := 0, 0
	require.Eventually(t, func() bool {
		nowFDs, nowRSS = held(t, s.host.Process.Pid)
		return nowFDs <= fds+8
	}, time.Minute, 100*time.Millisecond, "the host had %d descriptors at first", fds)
	t.Logf("the host: %d descriptors and %d KiB resident, then %d and %d", fds, rss, nowFDs, nowRSS)

	require.NoError(t, s.host.Process.Kill())
	var exit *exec.ExitError
	require.True(t, errors.As(s.host.Wait(), &exit))
	for _, file := range s.pids {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(line)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return !mcpkittest.IsRunning(pid) }, time.Minute, 5*time.Millisecond, "%d of %s", pid, file)
		}
	}
}

// restart has servers crash n times, each in turn, and come back.
func (s *storm) restart(n int) {
	begin := time.Now()
	for k := range n {
		i := k % len(s.modes)
		require.Equal(s.t, "SERVER_OFFLINE", s.call(i, "crash", nil))
		require.Eventually(s.t, func() bool { return s.call(i, "echo", nil) == "" }, time.Minute, time.Millisecond)
		if k%100 == 0 {
			fds, rss := held(s.t, s.host.Process.Pid)
			s.t.Logf("%d restarts after %v: %d descriptors, %d KiB", k, time.Since(begin).Round(time.Second), fds, rss)
		}
	}
}
