package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/cli"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/internal/testkit/leakcheck"
	"github.com/toolroom-mcp/toolroom/internal/testkit/talkserver"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0")        //nolint:errcheck // for the children; they end with os.Exit
	if len(os.Args) == 2 && os.Args[1] == "guard" { // of a host that runs in the test's process
		os.Exit(cli.Main())
	}
	if len(os.Args) > 1 && os.Args[1] == core.ResidentCommand { // started by such a host
		os.Exit(cli.Main())
	}
	testscript.Main(leakcheck.Tests{Tests: m}, map[string]func(){
		"mcp-host": func() { os.Exit(cli.Main()) },
		"fixture":  func() { os.Exit(faultserver.Main(os.Args[1:])) },
		"talker":   func() { os.Exit(talkserver.Main(false)) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"approval": approvalCmd},
		// With the race detector a command takes 0.1 s of the processor to start.
		Condition: func(name string) (bool, error) {
			if name != "race" {
				return false, fmt.Errorf("no condition %s", name)
			}
			return mcpkittest.RaceEnabled, nil
		},
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"} {
				env.Setenv(name, filepath.Join(env.WorkDir, strings.ToLower(name)))
			}
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
	})
}

// approvalCmd is the command approval NAME: it sets a variable to the id of the
// last request in the JSON on standard output.
func approvalCmd(ts *testscript.TestScript, _ bool, args []string) {
	var all []struct{ ID string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &all))
	if len(all) == 0 {
		ts.Fatalf("no call waits")
	}
	ts.Setenv(args[0], all[len(all)-1].ID)
}

// served is a host that runs in this process.
type served struct {
	url, token string
	end        func() int
}

func serve(t *testing.T, args ...string) served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- cli.Run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), strings.NewReader(""), in, t.Output())
		in.Close()
	}()
	lines := bufio.NewReader(out)
	read := func(label string) string {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		value, ok := strings.CutPrefix(line, label)
		require.True(t, ok, line)
		return strings.TrimSpace(value)
	}
	s := served{url: read("url:"), token: read("token:")}
	s.end = sync.OnceValue(func() int {
		cancel()
		return <-status
	})
	t.Cleanup(func() { s.end() })
	return s
}

func (s served) post(t *testing.T, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func writeConfig(t *testing.T, servers map[string][]string) string {
	t.Helper()
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	cfg := map[string]map[string]server{"mcpServers": {}}
	for name, args := range servers {
		cfg["mcpServers"][name] = server{"fixture", args}
	}
	text, err := json.Marshal(cfg)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(name, text, 0o600))
	return name
}

func TestServe(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("TOOLROOM_TOKEN", "")
	config := writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}, "down": {"-start", "crash"}})
	s := serve(t, "--config", config, "--state", state)
	require.GreaterOrEqual(t, len(s.token), 43, "32 random bytes")
	if runtime.GOOS != "windows" {
		info, err := os.Stat(filepath.Join(state, "token"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		info, err = os.Stat(state)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}

	status, body := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	require.Equal(t, 200, status)
	require.Contains(t, body, strings.Replace(faultserver.Definition("echo"), `"name":"echo"`, `"name":"fix__echo"`, 1))
	require.NotContains(t, body, "down__", "a server that does not start hides no other")
	status, body = s.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fix__echo","arguments":{"f": 1.50}}}`)
	require.Equal(t, 200, status)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"f\": 1.50}"}]}}`, body)
	_, body = s.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fix__crash"}}`)
	require.Contains(t, body, `"toolroom/code":"SERVER_OFFLINE"`)
	_, body = s.post(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fix__echo"}}`)
	require.Contains(t, body, `"result"`, "it is started again")
	_, body = s.post(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fix__env","arguments":{"text":"TOOLROOM_TOKEN"}}}`)
	require.Contains(t, body, `"text":""`)

	// The port is taken now.
	var stderr strings.Builder
	addr := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	require.Equal(t, 1, cli.Run(t.Context(), []string{"serve", "--listen", addr, "--state", state}, strings.NewReader(""), io.Discard, &stderr))
	require.Contains(t, stderr.String(), "is in use by another program; choose another with --listen")

	require.Zero(t, s.end())
	again := serve(t, "--config", config, "--state", state)
	require.Equal(t, s.token, again.token, "made once")
}

func TestTokenOfTheUser(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	file := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(file, []byte("from-the-file-0123456789\n"), 0o600))
	t.Setenv("TOOLROOM_TOKEN", "from-the-environment-0123456789")
	require.Equal(t, "from-the-environment-0123456789", serve(t, "--state", dir+"/s").token)
	require.Equal(t, "from-the-file-0123456789", serve(t, "--state", dir+"/s", "--token-file", file).token)
	s := serve(t, "--state", dir+"/s", "--no-token")
	status, _ := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	require.Equal(t, 200, status)
}

// client is the other end of mcp-host stdio, run in this process.
type client struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Reader
}

func stdio(t *testing.T, args ...string) *client {
	t.Helper()
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(context.Background(), append([]string{"stdio"}, args...), in, out, t.Output())
		out.Close()
	}()
	t.Cleanup(func() {
		feed.Close()
		require.Zero(t, <-done)
	})
	return &client{t, feed, bufio.NewReader(answers)}
}

func (c *client) send(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, line+"\n")
	require.NoError(c.t, err)
}

func (c *client) read() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(c.t, err)
	return strings.TrimSpace(line)
}

func TestTheClientsRootsReachServersThatAsk(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	config := writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}})
	for _, own := range []string{"", "--root=", "directory"} {
		dir := t.TempDir()
		args := []string{"--config", config, "--state", t.TempDir()}
		want := "file:///offered"
		if own != "" {
			args = append(args, strings.TrimPrefix(own, "directory")+dir)
			want = (&url.URL{Path: filepath.ToSlash(dir)}).EscapedPath()
		}
		c := stdio(t, args...)
		c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
		c.read()
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fix__roots"}}`)
		line := c.read()
		if strings.Contains(line, "roots/list") {
			var m struct{ ID json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(line), &m))
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///offered"}]}}`, m.ID))
			line = c.read()
		}
		require.Contains(t, line, want)
	}
}

func TestAListChangeReachesTheClient(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	c := stdio(t, "--config", writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}}), "--state", t.TempDir())
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	c.read()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fix__add_tool","arguments":{"text":"late"}}}`)
	lines := c.read() + c.read()
	require.Contains(t, lines, "notifications/tools/list_changed")
	c.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fix__late"}}`)
	require.Contains(t, c.read(), "no tool late", "it is routed to the server by its own name")
}

func TestSixtyFourCallsAtOnceOverHTTP(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s := serve(t, "--config", writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}}), "--state", t.TempDir())
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 5 {
				_, body := s.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"fix__echo","arguments":{"i":%d,"j":%d}}}`, i, i, j))
				if want := fmt.Sprintf(`{\"i\":%d,\"j\":%d}`, i, j); !strings.Contains(body, want) {
					t.Errorf("want %s in %s", want, body)
				}
			}
		})
	}
	wg.Wait()
}

func TestIdleConnectionsDoNotKeepItUp(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s := serve(t, "--state", t.TempDir())
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp"))
	require.NoError(t, err)
	defer conn.Close()
	begin := time.Now()
	require.Zero(t, s.end())
	require.Less(t, time.Since(begin), 20*time.Second)
}

// A call that is still running when the host ends is answered that it was
// cut off.
func TestACallUnderWayIsAnsweredAtTheEnd(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	pid := filepath.Join(t.TempDir(), "pid")
	s := serve(t, "--config", writeConfig(t, map[string][]string{"fix": {"-era", "legacy", "-pid", pid}}), "--state", t.TempDir())
	var body string
	var wg sync.WaitGroup
	wg.Go(func() {
		_, body = s.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fix__hang"}}`)
	})
	require.Eventually(t, func() bool { _, err := os.Stat(pid); return err == nil }, time.Minute, time.Millisecond)
	require.Zero(t, s.end())
	wg.Wait()
	require.Contains(t, body, "fix__hang was not finished: the host is stopping")
	require.Contains(t, body, `"toolroom/code":"CANCELLED"`)
}

func writeFile(name, text string) error { return os.WriteFile(name, []byte(text), 0o600) }
