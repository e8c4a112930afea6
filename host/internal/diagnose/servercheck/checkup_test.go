package servercheck_test

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/diagnose/servercheck"
	"github.com/toolroom-mcp/toolroom/internal/testkit/leakcheck"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// stays is the variable of a child that ignores the end of its input.
const stays = "CHECKUP_TEST_STAYS"

// leaves is the variable of a child that leaves one of its own behind, and
// holds that of this, which connects to an address until it ends.
const (
	leaves = "CHECKUP_TEST_LEAVES"
	holds  = "CHECKUP_TEST_HOLDS"
)

// asks is the variable of a child that sends requests before it reads anything.
const asks = "CHECKUP_TEST_ASKS"

func TestMain(m *testing.M) {
	if os.Getenv(asks) != "" {
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":"a","method":"ping"}`,
			`{"jsonrpc":"2.0","id":"b","method":"roots/list"}`,
		} {
			os.Stdout.WriteString(line + "\n") //nolint:errcheck // the test finds out
		}
	}
	if os.Getenv(stays) != "" {
		mock := mcpkittest.NewMock("stays")
		mock.Serve(context.Background(), os.Stdin, os.Stdout) //nolint:errcheck // it stays
		time.Sleep(time.Hour)
	}
	if address := os.Getenv(holds); address != "" {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			os.Stdout.WriteString("there") //nolint:errcheck // who waits for it finds its end
			io.Copy(io.Discard, conn)      //nolint:errcheck // it ends with this process
		}
		os.Exit(0)
	}
	if address := os.Getenv(leaves); address != "" {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), holds+"="+address)
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err == nil {
			_, err = io.ReadFull(out, make([]byte, len("there")))
		}
		if err != nil {
			os.Exit(9)
		}
	}
	mcpkittest.MockChild()
	os.Exit(leakcheck.Tests{Tests: m}.Run())
}

// look checks a mock as a child process, and returns how each check came out.
func look(t *testing.T, m *mcpkittest.Mock) map[string]servercheck.Check {
	t.Helper()
	command, env := m.Command(t)
	return run(t, servercheck.Config{Command: command, Env: env, LongLine: 100 << 10})
}

func run(t *testing.T, cfg servercheck.Config) map[string]servercheck.Check {
	t.Helper()
	checks, err := servercheck.Run(t.Context(), cfg)
	require.NoError(t, err)
	byName := map[string]servercheck.Check{}
	for _, c := range checks {
		require.NotEmpty(t, c.Detail, c.Name)
		_, twice := byName[c.Name]
		require.False(t, twice, c.Name)
		byName[c.Name] = c
	}
	return byName
}

func sound() *mcpkittest.Mock {
	m := mcpkittest.NewMock("sound")
	m.AddTool("a", `{"description":"Does a.","annotations":{"readOnlyHint":true}}`)
	m.AddTool("b", `{"description":"Does b.","annotations":{"readOnlyHint":false}}`)
	m.SetPageSize(1)
	return m
}

func TestASoundServer(t *testing.T) {
	m := sound()
	checks := look(t, m)
	require.Len(t, checks, 17)
	for _, c := range checks {
		require.Equal(t, servercheck.Good, c.Level, c.Name+": "+c.Detail)
	}
	require.Equal(t, "2 tools", checks["tools/list"].Detail)
	for _, c := range m.Calls() {
		require.Equal(t, "no_such_tool_here", c.Tool, "nothing that could be carried out")
	}
}

func TestBothErasAreLookedAt(t *testing.T) {
	m := sound()
	m.EnableModern()
	checks := look(t, m)
	require.Equal(t, "version 2026-07-28", checks["handshake, modern"].Detail)
	require.Equal(t, servercheck.Check{Name: "tools/list, modern", Level: servercheck.Good, Detail: "2 tools"}, checks["tools/list, modern"])

	m.SetError("initialize", -32601, "only the modern era")
	checks = look(t, m)
	require.Equal(t, servercheck.Weak, checks["handshake, legacy"].Level, "one era is enough")
	require.Equal(t, servercheck.Good, checks["schemas"].Level)
}

// OnCheck is called with what Run returns, also where a level depends on a later check.
func TestChecksAreToldInOrder(t *testing.T) {
	both, modern := sound(), sound()
	both.EnableModern()
	modern.EnableModern()
	modern.SetError("initialize", -32601, "only the modern era")
	for _, m := range []*mcpkittest.Mock{sound(), both, modern} {
		command, env := m.Command(t)
		var told []servercheck.Check
		checks, err := servercheck.Run(t.Context(), servercheck.Config{Command: command, Env: env, LongLine: 1000, OnCheck: func(c servercheck.Check) { told = append(told, c) }})
		require.NoError(t, err)
		require.Equal(t, checks, told)
	}
}

// A check is told before the next one is made.
func TestChecksAreToldAsTheyCome(t *testing.T) {
	command, env := mcpkittest.NewMock("m").Command(t)
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	checks, err := servercheck.Run(ctx, servercheck.Config{Command: command, Env: env, LongLine: 1000, OnCheck: func(c servercheck.Check) {
		told = append(told, c.Name)
		cancel()
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "handshake, legacy", told[0])
	for _, c := range checks {
		require.NotEqual(t, "handshake, modern", c.Name, "it was begun after the end")
	}
}

func TestEachFaultIsFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(m *mcpkittest.Mock)
		check  string
		level  servercheck.Level
		detail string
	}{
		{"noise", func(m *mcpkittest.Mock) { m.SetNoiseLine("listening …") }, "standard output", servercheck.Bad, "listening …"},
		{"refuses", func(m *mcpkittest.Mock) { m.SetError("initialize", -32600, "no") }, "handshake, legacy", servercheck.Bad, "refused with -32600: no"},
		{"dies", func(m *mcpkittest.Mock) { m.SetCrash("initialize") }, "handshake, legacy", servercheck.Bad, "the program has ended"},
		{"ping", func(m *mcpkittest.Mock) { m.SetError("ping", -32601, "what?") }, "ping", servercheck.Bad, "-32601"},
		{"list", func(m *mcpkittest.Mock) { m.SetError("tools/list", -32603, "oh") }, "tools/list", servercheck.Bad, "oh"},
		{"dies later", func(m *mcpkittest.Mock) { m.SetCrash("no/such/method") }, "unknown method", servercheck.Bad, "ended"},
		{"wrong code", func(m *mcpkittest.Mock) { m.SetError("no/such/method", -32000, "?") }, "unknown method", servercheck.Bad, "-32000"},
		{"name", func(m *mcpkittest.Mock) { m.AddTool("a b", "") }, "names", servercheck.Bad, `"a b"`},
		{"dotted name", func(m *mcpkittest.Mock) { m.AddTool("a.b", "") }, "names", servercheck.Weak, "hosts rename it"},
		{"schema", func(m *mcpkittest.Mock) {
			m.AddTool("a", `{"inputSchema":{"type":"object","properties":{"x":{"type":"nonsense"}}}}`)
		}, "schemas", servercheck.Bad, "inputSchema"},
		{"no object", func(m *mcpkittest.Mock) { m.AddTool("a", `{"outputSchema":{"type":"string"}}`) }, "schemas", servercheck.Bad, "outputSchema"},
		{"no description", func(m *mcpkittest.Mock) { m.AddTool("a", "") }, "descriptions", servercheck.Weak, `"a" has none`},
		{"hint", func(m *mcpkittest.Mock) { m.AddTool("a", `{"annotations":{"readOnlyHint":"yes"}}`) }, "annotations", servercheck.Bad, "not a boolean"},
		{"hints", func(m *mcpkittest.Mock) {
			m.AddTool("a", `{"annotations":{"readOnlyHint":true,"destructiveHint":true}}`)
		}, "annotations", servercheck.Weak, "read-only and destructive"},
		{"missing argument", func(m *mcpkittest.Mock) { m.AddTool("a", `{"inputSchema":{"type":"object","required":["x"]}}`) }, "invalid arguments", servercheck.Bad, "not refused"},
		{"mistyped argument", func(m *mcpkittest.Mock) {
			m.AddTool("a", `{"inputSchema":{"type":"object","properties":{"x":{"type":"string"}}},"annotations":{"readOnlyHint":true}}`)
		}, "invalid arguments", servercheck.Bad, "not refused"},
		{"says not why", func(m *mcpkittest.Mock) {
			m.AddTool("a", `{"inputSchema":{"type":"object","required":["x"]}}`)
			m.SetToolError("a", " ")
		}, "invalid arguments", servercheck.Bad, "but not why"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := sound()
			c.spoil(m)
			got := look(t, m)[c.check]
			require.Equal(t, c.level, got.Level, got.Detail)
			require.Contains(t, got.Detail, c.detail)
		})
	}
}

func TestAServerThatHangs(t *testing.T) {
	m := sound()
	m.SetMalformed("tools/list")
	command, env := m.Command(t)
	checks := run(t, servercheck.Config{Command: command, Env: env, LongLine: 1 << 10, Timeout: 100 * time.Millisecond})
	require.Equal(t, servercheck.Bad, checks["tools/list"].Level)
	require.Contains(t, checks["tools/list"].Detail, "no answer within 100ms")
	require.Equal(t, servercheck.Bad, checks["standard output"].Level)
}

func TestNoiseInThePlaceOfAnAnswer(t *testing.T) {
	m := sound()
	m.SetMalformed("initialize")
	command, env := m.Command(t)
	checks := run(t, servercheck.Config{Command: command, Env: env, LongLine: 1 << 10, StartTimeout: time.Second, Timeout: 100 * time.Millisecond})
	require.Equal(t, servercheck.Bad, checks["handshake, legacy"].Level)
	require.Contains(t, checks["standard output"].Detail, "1 non-message lines")
}

func TestAServerThatStays(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	checks := run(t, servercheck.Config{Command: []string{self}, Env: append(os.Environ(), stays+"=1", "GORACE=atexit_sleep_ms=0"), LongLine: 5 << 20, Timeout: 700 * time.Millisecond})
	require.Equal(t, servercheck.Bad, checks["end of input"].Level)
	require.Equal(t, servercheck.Bad, checks["no input"].Level)
}

func TestNothingIsLeftBehind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no process groups")
	}
	door, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer door.Close()
	ended := make(chan error)
	go func() {
		for {
			conn, err := door.Accept()
			if err != nil {
				close(ended)
				return
			}
			_, err = io.Copy(io.Discard, conn) // until the child ends
			ended <- err
		}
	}()
	command, env := sound().Command(t)
	var all sync.WaitGroup
	all.Go(func() {
		run(t, servercheck.Config{Command: command, Env: append(env, leaves+"="+door.Addr().String()), LongLine: 1 << 10})
		door.Close() //nolint:errcheck // all that there are have connected, or never will
	})
	n := 0
	for range ended {
		n++
	}
	all.Wait()
	require.Positive(t, n)
}

func TestWhatIsNoProgram(t *testing.T) {
	_, err := servercheck.Run(t.Context(), servercheck.Config{Command: []string{"ls"}})
	require.ErrorContains(t, err, "not an absolute path")
	checks := run(t, servercheck.Config{Command: []string{os.TempDir()}})
	require.Contains(t, checks["handshake, legacy"].Detail, "cannot be started")
	require.Len(t, checks, 2)
}

// A server may send a request as soon as it starts, also one that was started
// without standard input, to which no answer can be written.
func TestAServerThatSendsRequestsAtOnce(t *testing.T) {
	t.Parallel()
	command, env := sound().Command(t)
	checks := run(t, servercheck.Config{Command: command, Env: append(env, asks+"=1"), LongLine: 100 << 10})
	for _, name := range []string{"handshake, legacy", "end of input", "no input"} {
		require.Equal(t, servercheck.Good, checks[name].Level, "%+v", checks[name])
	}
}
