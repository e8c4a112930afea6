package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// running is a host in a process of its own.
type running struct {
	*exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

// start starts mcp-host and ends it with the test.
func start(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	r := &running{Cmd: exec.Command("mcp-host", args...)}
	r.Env = append(os.Environ(), env...)
	r.Stderr = t.Output()
	var err error
	r.in, err = r.StdinPipe()
	require.NoError(t, err)
	out, err := r.StdoutPipe()
	require.NoError(t, err)
	r.lines = bufio.NewReader(out)
	require.NoError(t, r.Start())
	t.Cleanup(func() {
		r.in.Close()
		r.end()
	})
	return r
}

// end kills it, unless it has ended.
func (r *running) end() {
	r.Process.Kill() //nolint:errcheck // it may have ended
	r.Wait()         //nolint:errcheck // likewise
}

// say sends one line and returns the next one that comes.
func (r *running) say(t *testing.T, line string) string {
	t.Helper()
	_, err := io.WriteString(r.in, line+"\n")
	require.NoError(t, err)
	return r.read(t)
}

func (r *running) read(t *testing.T) string {
	t.Helper()
	line, err := r.lines.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// serving starts mcp-host serve and returns it with its door.
func serving(t *testing.T, env []string, args ...string) (*running, served) {
	t.Helper()
	r := start(t, env, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	url, ok := strings.CutPrefix(r.read(t), "url:")
	require.True(t, ok)
	token, ok := strings.CutPrefix(r.read(t), "token:")
	require.True(t, ok)
	return r, served{url: strings.TrimSpace(url), token: strings.TrimSpace(token)}
}

// mcpHost runs a command to its end.
func mcpHost(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	cmd := exec.Command("mcp-host", args...)
	cmd.Stdout, cmd.Stderr = &out, &err
	if e := cmd.Run(); e != nil {
		require.IsType(t, &exec.ExitError{}, e)
	}
	return cmd.ProcessState.ExitCode(), out.String(), err.String()
}

// page is what Prometheus would read: values by name and labels.
type page map[string]float64

// readPage reads the text format as strictly as its description is: a family
// begins with its help and type, holds all samples of its name, and no sample
// twice; histograms rise to a bucket +Inf that is their count.
func readPage(t *testing.T, text string) page {
	t.Helper()
	require.True(t, strings.HasSuffix(text, "\n"))
	sample := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\[\\"n])*",?)*\})? (\S+)$`)
	p, families := page{}, map[string]string{}
	var family, kind string
	rising := 0.0
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			family, _, _ = strings.Cut(help, " ")
			require.NotContains(t, families, family, "one family each")
			kind, ok = strings.CutPrefix(lines[i+1], "# TYPE "+family+" ")
			require.True(t, ok, line)
			require.Contains(t, []string{"counter", "gauge", "histogram"}, kind)
			families[family] = kind
			continue
		}
		if strings.HasPrefix(line, "# TYPE ") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		require.NotNil(t, m, line)
		name := m[1]
		if kind == "histogram" {
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		}
		require.Equal(t, family, name, "samples stand with their family: %s", line)
		value, err := strconv.ParseFloat(m[3], 64)
		require.NoError(t, err, line)
		require.NotContains(t, p, m[1]+m[2], "a sample twice")
		p[m[1]+m[2]] = value
		switch {
		case strings.HasSuffix(m[1], "_bucket"):
			require.GreaterOrEqual(t, value, rising, line)
			rising = value
		case strings.HasSuffix(m[1], "_count"):
			require.Equal(t, rising, value, line)
			rising = 0
		}
	}
	return p
}

func (s served) get(t *testing.T, method, path, token string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(s.url, "/mcp")+path, nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body), resp.Header
}

func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	_, s := serving(t, nil, "--state", dir, "--config", writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}, "down": {"-start", "crash"}}))
	for _, path := range []string{"/metrics", "/metrics/", "/metricsx"} {
		status, body, _ := s.get(t, http.MethodGet, path, "")
		require.Equal(t, 401, status, body)
	}
	status, _, header := s.get(t, http.MethodPost, "/metrics", s.token)
	require.Equal(t, 405, status)
	require.Equal(t, "GET, HEAD", header.Get("Allow"))
	status, body, _ := s.get(t, http.MethodHead, "/metrics", s.token)
	require.Equal(t, 200, status)
	require.Empty(t, body)
	status, body, _ = s.get(t, http.MethodGet, "/healthz", "")
	require.Equal(t, 200, status)
	require.Equal(t, "ok\n", body)

	call := func(name string) {
		s.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":{}}}`)
	}
	for range 3 {
		call("fix__echo")
	}
	call("fix__fail")
	call("fix__rpcerror")
	call("fix__crash")
	call("no__such") // is no call of a tool
	status, body, header = s.get(t, http.MethodGet, "/metrics", s.token)
	require.Equal(t, 200, status)
	require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", header.Get("Content-Type"))
	p := readPage(t, body)
	for sample, want := range map[string]float64{
		`toolroom_calls_total{tool="fix__echo",server="fix"}`:                                 3,
		`toolroom_call_duration_seconds_count{tool="fix__echo",server="fix"}`:                 3,
		`toolroom_call_duration_seconds_bucket{tool="fix__echo",server="fix",le="+Inf"}`:      3,
		`toolroom_call_errors_total{tool="fix__fail",server="fix",code="tool_error"}`:         1,
		`toolroom_call_errors_total{tool="fix__rpcerror",server="fix",code="PROTOCOL_ERROR"}`: 1,
		`toolroom_call_errors_total{tool="fix__crash",server="fix",code="SERVER_OFFLINE"}`:    1,
		`toolroom_calls_running{server="fix",tool=""}`:                                        0,
		`toolroom_permits{server="fix",tool=""}`:                                              5,
		`toolroom_audit_lost_total`:                                                           0,
		`toolroom_server_state{server="down",state="ready"}`:                                  0,
	} {
		require.Contains(t, p, sample, body)
		require.Equal(t, want, p[sample], sample)
	}
	for _, sample := range []string{
		`toolroom_result_bytes_total{tool="fix__echo",server="fix"}`, `toolroom_call_duration_seconds_sum{tool="fix__echo",server="fix"}`,
		`go_goroutines`, `process_start_time_seconds`, `go_memstats_heap_alloc_bytes`, `toolroom_server_latency_seconds{server="fix"}`,
	} {
		require.Positive(t, p[sample], sample)
	}
	require.NotContains(t, body, "no__such")
	var states []string
	for sample, value := range p {
		if strings.HasPrefix(sample, "toolroom_server_state{") && value == 1 {
			states = append(states, sample[:strings.IndexByte(sample, ',')])
		}
	}
	slices.Sort(states)
	require.Equal(t, []string{`toolroom_server_state{server="down"`, `toolroom_server_state{server="fix"`}, states, "each is in one state")
}

func TestCommandsAskRunningHosts(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	state := filepath.Join(dir, "state")
	one := writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}, "down": {"-start", "crash"}})
	two := writeConfig(t, map[string][]string{"other": {"-era", "legacy"}})
	web, s := serving(t, nil, "--state", state, "--config", one)
	s.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fix__crash"}}`)
	s.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fix__echo"}}`)

	type server struct {
		Host            int
		Name, State     string
		Tools, Restarts int
		LatencyMS       float64
		LastFailure     struct{ Stage, Message string }
		Error           string
	}
	servers := func(want int, args ...string) map[string]server {
		status, out, errs := mcpHost(t, append([]string{"servers", "--json", "--state", state}, args...)...)
		require.Equal(t, want, status, errs)
		var list []server
		require.NoError(t, json.Unmarshal([]byte(out), &list), out)
		found := map[string]server{}
		for _, s := range list {
			found[s.Name] = s
		}
		return found
	}
	got := servers(0)
	require.Len(t, got, 2)
	fix := got["fix"]
	require.Equal(t, web.Process.Pid, fix.Host)
	require.Contains(t, []string{"unstable", "ready"}, fix.State, "for a minute after a crash it is unstable")
	require.Equal(t, "run", fix.LastFailure.Stage)
	require.Contains(t, fix.LastFailure.Message, "segmentation fault, as asked")
	require.Equal(t, 24, fix.Tools)
	require.Positive(t, fix.LatencyMS)
	require.Equal(t, 1, fix.Restarts)
	require.Equal(t, "configured", got["down"].State, "nobody has asked for it")

	require.Equal(t, 2, servers(0, "reconnect", "fix")["fix"].Restarts)
	require.Contains(t, servers(3, "reconnect", "down")["down"].Error, "cannot find my configuration")
	require.Equal(t, "start", servers(0)["down"].LastFailure.Stage)
	status, _, errs := mcpHost(t, "servers", "reconnect", "nothing", "--state", state)
	require.Equal(t, 2, status)
	require.Contains(t, errs, `no server "nothing"`)
	_, out, _ := mcpHost(t, "servers", "--state", state)
	require.Regexp(t, `(?m)^host \d+ \(http://127.0.0.1:\d+/mcp, since .*\)\n`, out)
	require.Regexp(t, `(?m)^  fix +(unstable|ready) +24 tools; last answer in [0-9.]+ ms; restarted 2 times; \d+s ago, run: .*segmentation fault`, out)

	// Another host with the same state directory: both are shown, or the one
	// that is meant.
	stdio := start(t, nil, "stdio", "--state", state, "--config", two)
	stdio.say(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	require.ElementsMatch(t, []string{"fix", "down", "other"}, slices.Collect(maps.Keys(servers(0))))
	require.Equal(t, []string{"other"}, slices.Collect(maps.Keys(servers(0, "--config", two))))
	require.Equal(t, []string{"other"}, slices.Collect(maps.Keys(servers(0, "--host", fmt.Sprint(stdio.Process.Pid)))))
	status, _, errs = mcpHost(t, "servers", "--host", "1", "--state", state)
	require.Equal(t, 3, status)
	require.Contains(t, errs, "no host with process id 1 answers in "+state)
	status, out, _ = mcpHost(t, "stats", "--state", state)
	require.Zero(t, status)
	require.Regexp(t, `(?m)^ +1 +0 .* fix__echo$`, out)
	require.Regexp(t, `(?m)^host \d+ \(stdio, since .*\): 0 calls so far, 0 running, 0 waiting; `, out)
	require.Regexp(t, `(?m)^host \d+ \(http:.*\): 2 calls so far, 0 running, 0 waiting; `, out)

	// One that is killed leaves a socket, which is cleared away.
	web.end()
	sockets, err := filepath.Glob(filepath.Join(state, "hosts", "*"))
	require.NoError(t, err)
	require.Len(t, sockets, 2)
	require.Equal(t, []string{"other"}, slices.Collect(maps.Keys(servers(0))))
	sockets, err = filepath.Glob(filepath.Join(state, "hosts", "*"))
	require.NoError(t, err)
	require.Len(t, sockets, 1)
	require.NoError(t, stdio.in.Close())
	require.NoError(t, stdio.Wait())
	require.NoFileExists(t, sockets[0])
	status, out, errs = mcpHost(t, "servers", "--state", state, "--config", one)
	require.Zero(t, status)
	require.Regexp(t, `(?m)^fix +configured `, out)
	require.Contains(t, errs, "no host runs with the state directory "+state+"; listing the configured servers (start a host with mcp-host serve")
}

// otlp is a collector.
type otlp struct {
	*httptest.Server
	mu    sync.Mutex
	spans []map[string]any
}

func collector(t *testing.T) *otlp {
	c := &otlp{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []map[string]any }
			}
		}
		if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&body) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.spans = append(c.spans, body.ResourceSpans[0].ScopeSpans[0].Spans...)
		io.WriteString(w, "{}") //nolint:errcheck // the host is gone
	}))
	t.Cleanup(c.Close)
	return c
}

func TestTraces(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	config := writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}})
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ask := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fix__params","_meta":{"traceparent":"` + parent + `","tracestate":"a=1"}}}`

	// Without a collector both pass as they are.
	plain := start(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT="}, "stdio", "--config", config, "--state", dir)
	require.Contains(t, plain.say(t, ask), `\"_meta\":{\"traceparent\":\"`+parent+`\",\"tracestate\":\"a=1\"}`)

	at := collector(t)
	traced := start(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + at.URL, "OTEL_BSP_SCHEDULE_DELAY=20"}, "stdio", "--config", config, "--state", dir)
	answer := traced.say(t, ask)
	require.Contains(t, answer, `\"tracestate\":\"a=1\"`)
	sent := regexp.MustCompile(`\\"traceparent\\":\\"00-4bf92f3577b34da6a3ce929d0e0e4736-([0-9a-f]{16})-01\\"`).FindStringSubmatch(answer)
	require.NotNil(t, sent, answer)
	require.Eventually(t, func() bool {
		at.mu.Lock()
		defer at.mu.Unlock()
		return len(at.spans) == 2
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, traced.in.Close())
	require.NoError(t, traced.Wait())
	require.Equal(t, sent[1], at.spans[0]["spanId"])
	require.Equal(t, at.spans[1]["spanId"], at.spans[0]["parentSpanId"])
	require.Equal(t, "00f067aa0ba902b7", at.spans[1]["parentSpanId"])

	// A collector that is not there, or a wrong setting, stops nothing.
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, endpoint := range []string{gone.URL, "localhost:4317"} {
		broken := start(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint}, "stdio", "--config", config, "--state", dir)
		require.Contains(t, broken.say(t, ask), `"result"`)
		require.NoError(t, broken.in.Close())
		require.NoError(t, broken.Wait())
	}
}

// A thousand connections to the private socket that say nothing keep nobody
// out, and the host's descriptors stay bounded.
func TestTheSocketIsBounded(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	host := start(t, nil, "stdio", "--state", dir, "--config", writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}}))
	require.Contains(t, host.say(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), "result")
	var sockets []string
	require.Eventually(t, func() bool {
		sockets, _ = filepath.Glob(filepath.Join(dir, "hosts", "*.sock"))
		return len(sockets) == 1
	}, time.Minute, 5*time.Millisecond)
	flood(t, sockets[0], 1000)
	status, out, errs := mcpHost(t, "servers", "--state", dir)
	require.Zero(t, status, errs)
	require.Contains(t, out, "fix")
	require.Contains(t, host.say(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`), "result")
}

// flood opens so many connections, and holds 64 of them.
func flood(t *testing.T, name string, n int) {
	t.Helper()
	var open []net.Conn
	for range n {
		conn, err := net.Dial("unix", name)
		require.NoError(t, err)
		if open = append(open, conn); len(open) > 64 {
			open[0].Close() //nolint:errcheck // the host may have
			open = open[1:]
		}
	}
	t.Cleanup(func() {
		for _, conn := range open {
			conn.Close() //nolint:errcheck // likewise
		}
	})
}
