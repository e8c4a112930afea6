//go:build linux

package proc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// stubborn holds process trees that survive the usual attempts to kill them.
// Each prints "ready" and has TAG as the argument of a sleep in every process
// that must end.
var stubborn = map[string]string{
	"background":       `sleep TAG & sleep TAG & echo ready; wait`,
	"ignores TERM":     `trap '' TERM; sleep TAG & echo ready; while :; do sleep TAG; done`,
	"setsid":           `setsid sleep TAG & setsid -f sleep TAG; echo ready; sleep TAG`,
	"double fork":      `( ( trap '' TERM HUP; sleep TAG ) & ); ( setsid sh -c 'trap "" TERM HUP INT; (sleep TAG &) ; sleep TAG' & ); echo ready; sleep TAG`,
	"nohup":            `nohup sleep TAG >/dev/null 2>&1 & disown; echo ready; sleep TAG`,
	"stopped":          `sleep TAG & kill -STOP $!; echo ready; sleep TAG`,
	"empty env":        `env -i setsid sh -c 'trap "" TERM; sleep TAG' & echo ready; sleep TAG`,
	"own group":        `set -m; sleep TAG & sleep TAG & echo ready; wait`,
	"forks on":         `f() { trap '' TERM; while :; do (sleep TAG &) ; sleep 0.01; done; }; f & echo ready; sleep TAG`,
	"forks itself on":  `trap '' TERM; export -f f 2>/dev/null; cat > "$TMPDIR/f" <<'END'` + "\n" + `trap '' TERM; n=$1; [ $n -gt 40 ] && exec sleep TAG; setsid bash "$0" $((n+1)) & exit` + "\nEND\n" + `bash "$TMPDIR/f" 0; echo ready; sleep TAG`,
	"closes its files": `sleep TAG <&- >&- 2>&- & setsid sleep TAG <&- >&- 2>&- & echo ready; sleep TAG`,
}

var tags struct {
	sync.Mutex
	next int
}

// newTag returns a number of seconds that no other sleep has as its argument.
func newTag() string {
	tags.Lock()
	defer tags.Unlock()
	tags.next++
	return fmt.Sprintf("9%d%03d", os.Getpid(), tags.next)
}

// alive returns the processes with tag in their command line.
func alive(t testing.TB, tag string) []string {
	t.Helper()
	dir, err := os.Open("/proc")
	require.NoError(t, err)
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	require.NoError(t, err)
	var found []string
	for _, name := range names {
		if name[0] > '9' {
			continue
		}
		if text, err := os.ReadFile("/proc/" + name + "/cmdline"); err == nil && bytes.Contains(text, []byte(tag)) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

// waitAlive waits until a process has tag, or with want false until none has
// it.
func waitAlive(t testing.TB, tag string, want bool) {
	t.Helper()
	require.Eventually(t, func() bool { return len(alive(t, tag)) > 0 == want }, 30*time.Second, 10*time.Millisecond)
}

// children returns the child processes of this process.
func children(t testing.TB) []string {
	t.Helper()
	var found []string
	names, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, name := range names {
		text, _ := os.ReadFile(name)
		found = append(found, strings.Fields(string(text))...)
	}
	return found
}

func TestTheWholeTreeDies(t *testing.T) {
	ways := map[string]func(context.CancelFunc, *proc.Process){
		"cancel": func(cancel context.CancelFunc, _ *proc.Process) { cancel() },
		"kill":   func(_ context.CancelFunc, p *proc.Process) { p.Stop() },
	}
	endings := map[string]proc.Ending{"cancel": proc.Cancelled, "kill": proc.Killed}
	enforced := levels(t)
	for name, script := range stubborn {
		for way, end := range ways {
			for _, level := range enforced {
				if way == "cancel" && name != "double fork" && !long {
					continue // has the same effect
				}
				t.Run(name+"/"+way+"/"+string(level), func(t *testing.T) {
					t.Parallel()
					r := newRunner(t, proc.Config{Level: level, Grace: 100 * time.Millisecond})
					proc.TrustLevel(r, level)
					tag := newTag()
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					p, err := r.Start(ctx, proc.Command{
						Script: strings.ReplaceAll(script, "TAG", tag), Dir: "/", Rules: rules{root: t.TempDir()},
					})
					require.NoError(t, err)
					waitFor(t, p, "ready")
					waitAlive(t, tag, true)
					end(cancel, p)
					result := p.Wait()
					require.Equal(t, endings[way], result.Ending)
					require.Empty(t, alive(t, tag))
					require.Contains(t, p.Output().Excerpt(0).Text(), "ready", "what was printed is returned")
				})
			}
		}
	}
}

// timedOut runs a script that does not end by itself until its timeout, and
// returns its output. On a busy machine the script may not have begun by then:
// then it is run again with a longer timeout.
func timedOut(t *testing.T, r *proc.Runner, script string) *proc.Output {
	t.Helper()
	for timeout := 300 * time.Millisecond; ; timeout *= 2 {
		result, out, err := r.Run(context.Background(), proc.Command{Script: script, Dir: "/", Timeout: timeout})
		require.NoError(t, err)
		require.Equal(t, proc.TimedOut, result.Ending)
		if out.Size() > 0 || timeout > mcpkittest.MaxWait {
			t.Cleanup(func() { out.Close() })
			return out
		}
		out.Close()
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	r := newRunner(t, proc.Config{Level: proc.Off, Grace: 50 * time.Millisecond})
	tag := newTag()
	out := timedOut(t, r, `echo so far; trap '' TERM; (setsid sleep `+tag+` &); while :; do sleep `+tag+`; done`)
	require.Contains(t, out.Excerpt(0).Text(), "so far\n")
	require.Empty(t, alive(t, tag))
}

func TestTermComesFirst(t *testing.T) {
	r := newRunner(t, proc.Config{Level: proc.Off, Grace: time.Minute})
	p, err := r.Start(context.Background(), proc.Command{
		Script: `trap 'echo cleaning up; exit 3' TERM; echo ready; while :; do sleep 0.01; done`, Dir: "/",
	})
	require.NoError(t, err)
	waitFor(t, p, "ready")
	p.Stop()
	result := p.Wait()
	require.Equal(t, proc.Killed, result.Ending)
	require.Equal(t, 3, result.ExitCode)
	require.Contains(t, p.Output().Excerpt(0).Text(), "cleaning up")
}

func TestSignal(t *testing.T) {
	r := off(t)
	p, err := r.Start(context.Background(), proc.Command{Script: `trap 'echo usr1; exit 5' USR1; echo ready; while :; do sleep 0.01; done`, Dir: "/"})
	require.NoError(t, err)
	waitFor(t, p, "ready")
	require.NoError(t, p.Signal(syscall.SIGUSR1))
	result := p.Wait()
	require.Equal(t, proc.Exited, result.Ending)
	require.Equal(t, 5, result.ExitCode)
	require.ErrorIs(t, p.Signal(syscall.SIGUSR1), os.ErrProcessDone)
}

func TestCloseEndsAll(t *testing.T) {
	r := newRunner(t, proc.Config{Level: proc.Off, Grace: 50 * time.Millisecond})
	tag := newTag()
	var all []*proc.Process
	for range 8 {
		p, err := r.Start(context.Background(), proc.Command{Script: "(setsid sleep " + tag + " &); sleep " + tag, Dir: "/"})
		require.NoError(t, err)
		all = append(all, p)
	}
	require.NoError(t, r.Close())
	for _, p := range all {
		require.Equal(t, proc.Killed, p.Wait().Ending)
	}
	require.Empty(t, alive(t, tag))
}

// TestTwoHundredAtOnce: 200 concurrent commands leave no process, zombie or
// descriptor behind.
func TestTwoHundredAtOnce(t *testing.T) {
	descriptors := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(names)
	}
	first := off(t)
	run(t, first, proc.Command{Script: "true"}) // opens the descriptors of the Go runtime's poller
	require.NoError(t, first.Close())
	before := descriptors()
	r := off(t)
	tag := newTag()
	var wait sync.WaitGroup
	count := 200
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Max < 2000 {
		count = 20
		t.Logf("%d commands, since only %d descriptors may be open", count, limit.Max)
	}
	for i := range count {
		wait.Go(func() {
			result, out, err := r.Run(context.Background(), proc.Command{Script: fmt.Sprintf("(setsid sleep %s &); echo %d", tag, i), Dir: "/"})
			if err != nil || result.ExitCode != 0 || out.Excerpt(0).Text() != strconv.Itoa(i)+"\n" {
				t.Errorf("command %d: %+v %v %q", i, result, err, out.Excerpt(0).Text())
			}
		})
	}
	wait.Wait()
	require.Empty(t, alive(t, tag))
	require.NoError(t, r.Close())
	require.Empty(t, children(t), "no child, no zombie")
	require.Equal(t, before, descriptors())
}

// TestServerIsKilled starts commands in another process and kills that
// process.
func TestServerIsKilled(t *testing.T) {
	enforced := levels(t)
	for name, script := range stubborn {
		for _, level := range enforced {
			t.Run(name+"/"+string(level), func(t *testing.T) {
				t.Parallel()
				tag := newTag()
				killServer(t, serverJob{Script: strings.ReplaceAll(script, "TAG", tag), Level: level, Dir: t.TempDir(), Tag: tag})
				waitAlive(t, tag, false)
			})
		}
	}
}

// readUntil reads until it has read text.
func readUntil(t testing.TB, from io.Reader, text string) {
	t.Helper()
	buf := make([]byte, 4096)
	var seen []byte
	for !bytes.Contains(seen, []byte(text)) {
		n, err := from.Read(buf)
		require.NoError(t, err, "%s", seen)
		seen = append(seen, buf[:n]...)
	}
}

type serverJob struct {
	Script, Dir string
	Tag         string // of a process to wait for; may be empty
	Level       proc.Level
}

// TestServerProcess is the server that TestServerIsKilled kills.
func TestServerProcess(t *testing.T) {
	text := os.Getenv("PROC_TEST_SERVER")
	if text == "" {
		t.Skip("runs only as the other process of TestServerIsKilled")
	}
	var job serverJob
	require.NoError(t, json.Unmarshal([]byte(text), &job))
	r, err := proc.New(proc.Config{Level: job.Level, TempDir: job.Dir})
	require.NoError(t, err)
	proc.TrustLevel(r, job.Level)
	p, err := r.Start(context.Background(), proc.Command{Script: job.Script, Dir: "/", Rules: rules{root: job.Dir}})
	require.NoError(t, err)
	waitFor(t, p, "ready")
	if job.Tag != "" {
		waitAlive(t, job.Tag, true)
	}
	fmt.Println("command is running")
	<-p.Done()
}

// TestSupervisorIsKilled: only an unconfined command can kill its supervisor.
func TestSupervisorIsKilled(t *testing.T) {
	r := off(t)
	tag := newTag()
	result, _ := run(t, r, proc.Command{Script: "(setsid sleep " + tag + " &); sleep " + tag + " & kill -9 $PPID; sleep " + tag})
	require.Equal(t, proc.Lost, result.Ending)
	require.Equal(t, -1, result.ExitCode)
	require.Empty(t, alive(t, tag))
}
