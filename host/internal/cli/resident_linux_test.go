package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/resident"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// stdioClient is a client of mcp-host stdio. Any number of calls can be under way.
type stdioClient struct {
	host *exec.Cmd
	in   io.WriteCloser
	log  *transcript

	mu      sync.Mutex
	last    int
	answers map[int]chan string // the whole line
	twice   int                 // answers to no request, or to one that was answered
	ended   chan struct{}
}

// connectClient starts a host and opens a session.
func connectClient(t *testing.T, dir string, args ...string) *stdioClient {
	t.Helper()
	return connectProgram(t, "mcp-host", dir, args...)
}

// connectProgram does so with a host of another name or path.
func connectProgram(t *testing.T, program, dir string, args ...string) *stdioClient {
	t.Helper()
	c := &stdioClient{host: exec.Command(program, append([]string{"stdio"}, args...)...), log: &transcript{}, answers: map[int]chan string{}, ended: make(chan struct{})}
	c.host.Dir, c.host.Stderr = dir, c.log
	var err error
	c.in, err = c.host.StdinPipe()
	require.NoError(t, err)
	out, err := c.host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.host.Start())
	go c.read(out)
	t.Cleanup(c.close)
	c.ask(t, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	return c
}

func (c *stdioClient) read(out io.Reader) {
	defer close(c.ended)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     *int
			Method string
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil || m.Method != "" {
			continue
		}
		c.mu.Lock()
		answer := c.answers[*m.ID]
		delete(c.answers, *m.ID)
		if answer == nil {
			c.twice++
		}
		c.mu.Unlock()
		if answer != nil {
			answer <- string(line)
		}
	}
}

// begin sends a request and returns the channel for the answer.
func (c *stdioClient) begin(method, params string) <-chan string {
	answer := make(chan string, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.answers[c.last] = answer
	fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.last, method, params) //nolint:errcheck // the answer tells
	return answer
}

func (c *stdioClient) ask(t *testing.T, method, params string) string {
	t.Helper()
	select {
	case line := <-c.begin(method, params):
		return line
	case <-c.ended:
		t.Fatalf("the host has ended: %s", c.log.String())
	case <-time.After(2 * time.Minute):
		t.Fatalf("no answer to %s: %s", method, c.log.String())
	}
	return ""
}

func (c *stdioClient) call(t *testing.T, tool, arguments string) string {
	t.Helper()
	return c.ask(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
}

// close ends the session and waits for the host.
func (c *stdioClient) close() {
	c.in.Close()  //nolint:errcheck // it may be closed
	<-c.ended     // all output is read
	c.host.Wait() //nolint:errcheck // the test has seen what it needed
}

// sharedStatus returns the state of the shared servers; nil if none are shared.
func sharedStatus(t *testing.T, state string) *resident.Status {
	t.Helper()
	out, err := exec.Command("mcp-host", "status", "--shared", "--json", "--state", state).Output()
	require.NoError(t, err)
	var s *resident.Status
	require.NoError(t, json.Unmarshal(out, &s))
	return s
}

// sharing returns the arguments of hosts that share a server, and the files with the
// process ids of the server.
func sharing(t *testing.T, settings string) (state, pids string, args []string) {
	t.Helper()
	dir := t.TempDir()
	state, pids = filepath.Join(dir, "state"), filepath.Join(dir, "pids")
	file := filepath.Join(dir, "c.yaml")
	text := "share_servers: true\nservers: {fix: {command: fixture, args: [-era, legacy, -pid, " + pids + "]}}\n" + settings
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	t.Cleanup(func() { stopSharing(t, "mcp-host", state) })
	return state, pids, []string{"--config", file, "--state", state}
}

// stopSharing ends the shared servers of a program and waits for the process that ran them,
// which removes its files.
func stopSharing(t *testing.T, program, state string) {
	t.Helper()
	out, err := exec.Command(program, "stop", "--state", state).CombinedOutput()
	require.NoError(t, err, string(out))
	var pid int
	if n, _ := fmt.Sscanf(string(out), "process %d", &pid); n == 1 { //nolint:errcheck // otherwise none runs
		require.Eventually(t, func() bool { return !mcpkittest.IsRunning(pid) }, time.Minute, 5*time.Millisecond)
	}
}

func started(t *testing.T, pids string) []string {
	t.Helper()
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	return strings.Fields(string(text))
}

func TestHostsShareServers(t *testing.T) {
	t.Parallel()
	state, pids, args := sharing(t, "")
	require.Nil(t, sharedStatus(t, state))
	a, b := connectClient(t, "", args...), connectClient(t, "", args...)
	require.Contains(t, a.call(t, "fix__echo", `{"text":"a"}`), `\"a\"`)
	require.Contains(t, b.call(t, "fix__echo", `{"text":"b"}`), `\"b\"`)
	require.Len(t, started(t, pids), 1)
	alone := connectClient(t, "", append([]string{"--no-share"}, args...)...)
	require.Contains(t, alone.call(t, "fix__echo", `{"text":"c"}`), `\"c\"`)
	require.Len(t, started(t, pids), 2)

	s := sharedStatus(t, state)
	require.Equal(t, slices.Sorted(slices.Values([]int{a.host.Process.Pid, b.host.Process.Pid})), s.Hosts)
	i := slices.IndexFunc(s.Servers, func(one resident.ServerStatus) bool { return one.Name == "fix" })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, 2, s.Servers[i].Hosts)
	require.Equal(t, started(t, pids)[0], fmt.Sprint(s.Servers[i].PID))
	require.Positive(t, s.Servers[i].Memory)
	text, err := exec.Command("mcp-host", "status", "--shared", "--state", state).Output()
	require.NoError(t, err)
	require.Contains(t, string(text), "2 hosts")

	// Commands use the running process, and do not start one.
	out, err := exec.Command("mcp-host", append([]string{"call", "fix__echo", "text=d"}, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Len(t, started(t, pids), 2)

	// The servers end with the process; the hosts go on with another one.
	out, err = exec.Command("mcp-host", "stop", "--state", state).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), fmt.Sprintf("process %d and ", s.PID))
	require.Eventually(t, func() bool { return !mcpkittest.IsRunning(s.PID) }, time.Minute, 5*time.Millisecond)
	require.False(t, mcpkittest.IsRunning(s.Servers[i].PID))
	require.Eventually(t, func() bool { // a call may be under way when the host notices the end
		return strings.Contains(a.call(t, "fix__echo", `{"text":"e"}`), `\"e\"`)
	}, time.Minute, 10*time.Millisecond)
	require.NotEqual(t, s.PID, sharedStatus(t, state).PID)
}

// TestTheSharingProcessIsKilled kills the process that runs the shared servers while ten
// hosts have calls under way. Each call is answered once, no host ends, and no server
// is left.
func TestTheSharingProcessIsKilled(t *testing.T) {
	t.Parallel()
	state, pids, args := sharing(t, "")
	const hosts, inFlight = 10, 8
	calls := either(300, 10_000) // of each host
	var clients []*stdioClient
	for range hosts {
		clients = append(clients, connectClient(t, "", args...))
	}
	var done, lost atomic.Int64
	var wrong sync.Map
	var all sync.WaitGroup
	for h, c := range clients {
		turns := make(chan int)
		all.Go(func() {
			defer close(turns)
			for i := range calls {
				turns <- i
			}
		})
		for range inFlight {
			all.Go(func() {
				for i := range turns {
					text := fmt.Sprintf("%d.%d", h, i)
					select {
					case line := <-c.begin("tools/call", fmt.Sprintf(`{"name":"fix__echo","arguments":{"text":%q}}`, text)):
						done.Add(1)
						switch {
						case strings.Contains(line, `\"`+text+`\"`):
						case strings.Contains(line, "SERVER_OFFLINE") && strings.Contains(line, "whether the call was executed is unknown"):
							lost.Add(1)
							wrong.Store("lost", line)
						default:
							wrong.Store("answer", line)
						}
					case <-c.ended:
						wrong.Store("ended", c.log.String())
						return
					}
				}
			})
		}
	}
	kills := either(2, 5)
	for k := range kills {
		target := int64((k + 1) * hosts * calls / (kills + 1))
		require.Eventually(t, func() bool { return done.Load() >= target }, 5*time.Minute, time.Millisecond)
		if s := sharedStatus(t, state); s != nil {
			syscall.Kill(s.PID, syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
	}
	all.Wait()
	require.EqualValues(t, hosts*calls, done.Load())
	for _, kind := range []string{"answer", "ended"} {
		text, found := wrong.Load(kind)
		require.False(t, found, text)
	}
	example, _ := wrong.Load("lost")
	t.Logf("%d calls, %d of them lost, such as %v", done.Load(), lost.Load(), example)
	require.Less(t, lost.Load(), int64(hosts*inFlight*kills*4), "only those under way, and those while it starts again")
	for _, c := range clients {
		c.mu.Lock()
		require.Zero(t, c.twice)
		c.mu.Unlock()
		c.close()
	}
	require.NoError(t, exec.Command("mcp-host", "stop", "--state", state).Run())
	for _, pid := range started(t, pids) {
		var n int
		_, err := fmt.Sscan(pid, &n)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return !mcpkittest.IsRunning(n) }, time.Minute, 5*time.Millisecond)
	}
}

// A host that is killed takes nothing from the others, and the process ends some time
// after the last host.
func TestTheSharingProcessEndsAfterTheLastHost(t *testing.T) {
	t.Parallel()
	state, pids, args := sharing(t, "")
	process := exec.Command("mcp-host", "resident", "--state", state, "--config", os.DevNull, "--idle", "2s")
	var out bytes.Buffer
	process.Stdout, process.Stderr = &out, &out
	require.NoError(t, process.Start())
	require.Eventually(t, func() bool { return sharedStatus(t, state) != nil }, time.Minute, 10*time.Millisecond)
	a, b := connectClient(t, "", args...), connectClient(t, "", args...)
	require.Contains(t, a.call(t, "fix__echo", `{"text":"a"}`), `\"a\"`)
	slow := b.begin("tools/call", `{"name":"fix__sleep","arguments":{"n":500}}`)
	require.NoError(t, a.host.Process.Kill())
	require.Contains(t, <-slow, "slept")
	require.Contains(t, b.call(t, "fix__echo", `{"text":"b"}`), `\"b\"`)
	require.Len(t, started(t, pids), 1)
	require.Equal(t, process.Process.Pid, sharedStatus(t, state).PID)
	b.close()
	require.NoError(t, process.Wait(), out.String())
	require.Nil(t, sharedStatus(t, state))
	entries, err := filepath.Glob(filepath.Join(state, "shared", "*.sock"))
	require.NoError(t, err)
	require.Empty(t, entries)
	for _, pid := range started(t, pids) {
		_, err := os.Stat("/proc/" + pid)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

// Without a directory for its socket a host starts its servers itself, and says so.
func TestServersThatCannotBeShared(t *testing.T) {
	t.Parallel()
	state, _, args := sharing(t, "")
	require.NoError(t, os.MkdirAll(state, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(state, "shared"), nil, 0o600))
	c := connectClient(t, "", args...)
	require.Contains(t, c.call(t, "fix__echo", `{"text":"a"}`), `\"a\"`)
	require.Contains(t, c.log.String(), "servers are not shared: ")
}

// With a process that does not answer, a host starts its servers itself, and stop kills it.
func TestTheSharingProcessHangs(t *testing.T) {
	t.Parallel()
	state, pids, args := sharing(t, "")
	a := connectClient(t, "", args...)
	require.Contains(t, a.call(t, "fix__echo", `{"text":"a"}`), `\"a\"`)
	hung := sharedStatus(t, state).PID
	mcpkittest.Suspend(t, hung)
	b := connectClient(t, "", args...)
	require.Contains(t, b.call(t, "fix__echo", `{"text":"b"}`), `\"b\"`)
	require.Len(t, started(t, pids), 2, b.log.String())
	require.Contains(t, b.log.String(), "servers are not shared: ")
	require.Contains(t, b.log.String(), "did not answer within 2s")

	out, err := exec.Command("mcp-host", "stop", "--state", state).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), fmt.Sprintf("process %d did not answer and was killed", hung))
	require.Eventually(t, func() bool { return !mcpkittest.IsRunning(hung) }, time.Minute, 5*time.Millisecond)
	require.Eventually(t, func() bool { // a call may be under way when the host notices the end
		return strings.Contains(a.call(t, "fix__echo", `{"text":"c"}`), `\"c\"`)
	}, time.Minute, 10*time.Millisecond)
}

// The socket of the process that shares servers admits only its user.
func TestTheSocketIsPrivate(t *testing.T) {
	t.Parallel()
	state, _, args := sharing(t, "")
	c := connectClient(t, "", args...)
	require.Contains(t, c.call(t, "fix__echo", `{"text":"a"}`), `\"a\"`)
	dir := filepath.Join(state, "shared")
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	sockets, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	require.NoError(t, err)
	require.Len(t, sockets, 1)
	info, err = os.Stat(sockets[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	// What is not a request, or not for it, ends the connection or is refused.
	for _, line := range []string{"GET / HTTP/1.1", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"toolroom/attach","params":{"spec":{"command":["relative"]}}}`} {
		conn, err := net.Dial("unix", sockets[0])
		require.NoError(t, err)
		fmt.Fprintln(conn, line) //nolint:errcheck // the answer tells
		text, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.True(t, len(text) == 0 || strings.Contains(string(text), `"error"`), string(text))
		conn.Close() //nolint:errcheck // nothing is lost
	}
	require.Contains(t, c.call(t, "fix__echo", `{"text":"b"}`), `\"b\"`)
	if os.Getuid() != 0 {
		return
	}
	require.NoError(t, os.Chmod(dir, 0o777))
	require.NoError(t, os.Chmod(sockets[0], 0o777))
	for at := dir; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		require.NoError(t, os.Chmod(at, 0o777))
	}
	text := make(chan string)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			text <- errno.Error()
			return
		}
		conn, err := net.Dial("unix", sockets[0])
		if err != nil {
			text <- err.Error()
			return
		}
		fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"toolroom/resident"}`) //nolint:errcheck // the answer tells
		answer, _ := io.ReadAll(conn)                                               //nolint:errcheck // a reset is an end, too
		text <- string(answer)
	}()
	require.Empty(t, <-text, "another user is turned away")
}
