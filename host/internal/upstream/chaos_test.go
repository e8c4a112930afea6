package upstream_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestACrashFailsTheCallsUnderWayAndTheNextStartsAgain(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	mustDo(t, s, "echo", `{}`)
	var wg sync.WaitGroup
	errs := make([]error, 5)
	for i := range errs {
		wg.Go(func() { _, errs[i] = do(t.Context(), s, "hang", `{}`) })
	}
	require.Eventually(t, func() bool { return upstream.Pending(s) >= len(errs) }, time.Minute, time.Millisecond, "they are under way")
	_, err := do(t.Context(), s, "crash", `{}`)
	wg.Wait()
	for _, err := range append(errs, err) {
		require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
		require.ErrorContains(t, err, "exit status 3")
		require.ErrorContains(t, err, "segmentation fault, as asked")
	}
	mustDo(t, s, "echo", `{}`)
	st := s.Status()
	require.Equal(t, 1, st.Restarts)
	require.Equal(t, upstream.Unstable, st.State)
	require.Equal(t, upstream.StageRun, st.Last.Stage)
}

func TestAServerThatDiesWhileIdleIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	mustDo(t, s, "echo", `{}`)
	for range 3 {
		pid := s.Status().PID
		p, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.NoError(t, p.Kill())
		require.Eventually(t, func() bool { now := s.Status().PID; return now != 0 && now != pid }, time.Minute, time.Millisecond,
			"it is started again before anybody needs it")
		mustDo(t, s, "echo", `{}`)
	}
}

func TestAServerThatDoesNotStartIsReportedAndTriedLessAndLess(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	s := start(t, nil, "-start", "crash", "-pid", pids)
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := do(ctx, s, "echo", `{}`)
		cancel()
		require.Error(t, err)
	}
	_, err := do(t.Context(), s, "echo", `{}`)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "cannot find my configuration")
	require.Equal(t, "offline", s.Status().State)
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	require.Less(t, strings.Count(string(text), "\n"), 20, "with a growing pause, not once a call")
}

func TestAProgramThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *upstream.Config) { c.Command = []string{filepath.Join(t.TempDir(), "no")} })
	_, err := s.Tools(t.Context())
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "cannot start")
}

func TestAServerThatHangsAtStartIsGivenUp(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *upstream.Config) { c.StartTimeout = 200 * time.Millisecond }, "-start", "hang")
	_, err := s.Tools(t.Context())
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "did not answer the handshake within 200ms")
}

func TestNoiseIsCountedAndFloodsAreBounded(t *testing.T) {
	t.Parallel()
	if os.Getenv("UPSTREAM_SHARED") != "" {
		t.Skip("a host learns nothing of the output beside the messages of a process that it shares")
	}
	s := start(t, nil, "-start", "noise")
	mustDo(t, s, "noise", `{"n":1000}`)
	require.EqualValues(t, 1004, s.Status().Noise)
	mustDo(t, s, "flood", `{"n":5000000}`)
	require.Eventually(t, func() bool { return len(s.Status().Stderr) > 60_000 }, time.Minute, time.Millisecond)
	require.LessOrEqual(t, len(s.Status().Stderr), 64<<10)
	mustDo(t, s, "echo", `{}`)
}

func TestAServerThatStopsReadingIsGivenUp(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *upstream.Config) { c.WriteTimeout = 300 * time.Millisecond })
	mustDo(t, s, "stop_reading", `{}`)
	big := `{"text":"` + strings.Repeat("z", 1<<20) + `"}`
	var wg sync.WaitGroup
	var given atomic.Int64
	for range 4 {
		wg.Go(func() {
			_, err := do(t.Context(), s, "echo", big)
			if err == nil {
				return // on a slow machine it came when the server had been started anew
			}
			given.Add(1)
			require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
			require.ErrorContains(t, err, "has not read its input for 300ms")
		})
	}
	// A caller with less patience is not held up by the pipe.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := do(ctx, s, "echo", big)
	require.Error(t, err)
	wg.Wait()
	require.Positive(t, given.Load())
	mustDo(t, s, "echo", `{}`)
}

// A server that is silent and answers no ping (stopped, stuck, not reading) is
// given up, and its callers are told; one that only takes long is not.
func TestASilentServerIsGivenUp(t *testing.T) {
	for _, era := range []upstream.Era{upstream.Legacy, upstream.Modern} {
		t.Run(string(era), func(t *testing.T) {
			t.Parallel()
			s := start(t, func(c *upstream.Config) { c.QuietTime, c.StartTimeout, c.Era = time.Second, 2*time.Second, era })
			ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
			defer cancel()
			_, err := do(ctx, s, "hang", `{}`)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Zero(t, s.Status().Restarts, "it answers pings")

			mustDo(t, s, "stop_reading", `{}`)
			_, err = s.Ping(t.Context())
			const givenUp = "silent for 2s, also when pinged"
			if err == nil || !strings.Contains(err.Error(), givenUp) { // else the host has stopped the server before the ping's 2 s
				require.ErrorContains(t, err, "did not answer a ping within 2s")
				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = do(ctx, s, "echo", `{}`)
				require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
				require.ErrorContains(t, err, givenUp)
			}
			mustDo(t, s, "echo", `{}`)
		})
	}
}

func TestAServerThatClosesItsOutput(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	_, err := do(t.Context(), s, "close_stdout", `{}`)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	mustDo(t, s, "echo", `{}`)
}

func TestAHugeLineFailsItsCallAndNothingElse(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *upstream.Config) { c.MaxLine = 1 << 20 })
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := do(t.Context(), s, "sleep", `{"n":300}`)
		require.NoError(t, err)
	})
	_, err := do(t.Context(), s, "huge", `{"n":5000000}`)
	require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(err))
	mustDo(t, s, "echo", `{}`)
	wg.Wait()
	require.Zero(t, s.Status().Restarts)
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	var pid int
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	return pid
}

func requireGone(t *testing.T, pid int, what string) {
	t.Helper()
	require.Eventually(t, func() bool { return !mcpkittest.IsRunning(pid) }, time.Minute, 5*time.Millisecond, what)
}

func TestCloseEndsChildAndGrandchild(t *testing.T) {
	t.Parallel()
	file, daemon := filepath.Join(t.TempDir(), "grandchild"), filepath.Join(t.TempDir(), "daemon")
	s := start(t, nil, "-start", "deaf") // ignores the end of its input, and SIGTERM
	mustDo(t, s, "fork", `{"text":`+strconv.Quote(file)+`}`)
	child, grandchild := s.Status().PID, pidIn(t, file)
	require.True(t, mcpkittest.IsRunning(child) && mcpkittest.IsRunning(grandchild))
	away := 0
	if runtime.GOOS == "linux" {
		mustDo(t, s, "fork", `{"n":1,"text":`+strconv.Quote(daemon)+`}`)
		away = pidIn(t, daemon)
		require.True(t, mcpkittest.IsRunning(away))
	}
	s.Close()
	requireGone(t, child, "child")
	requireGone(t, grandchild, "grandchild")
	if away != 0 {
		requireGone(t, away, "one that left the group")
	}
	_, err := do(t.Context(), s, "echo", `{}`)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
}

func TestACrashTakesItsGrandchildrenAlong(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "grandchild")
	s := start(t, nil)
	mustDo(t, s, "fork", `{"text":`+strconv.Quote(file)+`}`)
	grandchild := pidIn(t, file) // it holds the server's stdout open
	_, err := do(t.Context(), s, "crash", `{}`)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	requireGone(t, grandchild, "grandchild")
}

// hostForKilling is a host in a process of its own: it starts the fixture,
// has it fork, and waits to be killed.
func hostForKilling(args []string) int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	spawner := upstream.NewSpawner([]string{self, "guard"})
	s, err := upstream.New(upstream.Config{
		Name: "fix", Env: os.Environ(),
		Command: []string{self, faultserver.Arg, "-start", "deaf", "-pid", args[0]},
	}, spawner)
	if err != nil {
		return 1
	}
	for i, file := range args[1:] { // the second leaves the group
		if _, err := do(context.Background(), s, "fork", fmt.Sprintf(`{"text":%q,"n":%d}`, file, i)); err != nil {
			return 1
		}
	}
	time.Sleep(time.Hour) // until it is killed
	return 1
}

func TestKillingTheHostLeavesNobody(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for range 3 {
		dir := t.TempDir()
		files := []string{filepath.Join(dir, "child"), filepath.Join(dir, "grandchild")}
		if runtime.GOOS == "linux" {
			files = append(files, filepath.Join(dir, "daemon"))
		}
		host := exec.Command(self, append([]string{"host"}, files...)...)
		host.Stderr = os.Stderr
		require.NoError(t, host.Start())
		var pids []int
		for _, file := range files {
			pids = append(pids, pidIn(t, file))
			require.True(t, mcpkittest.IsRunning(pids[len(pids)-1]))
		}
		require.NoError(t, host.Process.Kill())
		require.Error(t, host.Wait())
		for i, pid := range pids {
			requireGone(t, pid, files[i])
		}
	}
}

// Why a server does not start is often on its standard output, where it does
// not belong: that line is told, without the credentials in it.
func TestAStrayLineIsTold(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	for script, want := range map[string]string{
		"echo; echo Listening on port 3000 with $KEY; echo more; cat >/dev/null": `did not answer the handshake within 10s; on its standard output, where only messages are allowed: "Listening on port 3000 with ***"`,
		"echo usage: x; exit 0":                    `the server exited (exit status 0); on its standard output, where only messages are allowed: "usage: x"`,
		"echo usage: x; echo Error: y >&2; exit 4": `the server ended (exit status 4); on its standard error: Error: y; on its standard output, where only messages are allowed: "usage: x"`,
	} {
		timeout := time.Minute
		if strings.Contains(want, "within 10s") { // in which the shell has begun, also on a busy machine
			timeout = 10 * time.Second
		}
		spawner := upstream.NewSpawner(nil)
		s, err := upstream.New(upstream.Config{
			Name: "fix", Command: []string{sh, "-c", script}, KillsOwnTree: true, StartTimeout: timeout,
			Env: append(os.Environ(), "KEY=SEKRIT-key"), Secrets: []secret.Text{"SEKRIT-key"},
		}, spawner)
		require.NoError(t, err)
		_, err = s.Tools(t.Context())
		s.Close()
		spawner.Close()
		require.ErrorContains(t, err, want)
		require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	}
	s := start(t, nil, "-start", "noise")
	mustDo(t, s, "echo", `{}`)
	require.Equal(t, "Welcome to the fixture!", s.Status().Stray)
}
