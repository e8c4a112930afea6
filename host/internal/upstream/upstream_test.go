package upstream_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/internal/testkit/leakcheck"
	"github.com/toolroom-mcp/toolroom/internal/testkit/talkserver"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") //nolint:errcheck // for the children; they end with os.Exit
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case faultserver.Arg:
			os.Exit(faultserver.Main(os.Args[2:]))
		case talkserver.Arg:
			os.Exit(talkserver.Main(len(os.Args) > 2))
		case "guard":
			upstream.RunGuard(os.Stdin)
			os.Exit(0)
		case "host":
			os.Exit(hostForKilling(os.Args[2:]))
		}
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // they mostly wait
		panic(err)
	}
	os.Exit(leakcheck.Tests{Tests: m}.Run())
}

// start returns a server that runs the fixture with args.
func start(t *testing.T, change func(*upstream.Config), args ...string) *upstream.Server {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cfg := upstream.Config{
		Name: "fix", Command: append([]string{self, faultserver.Arg}, args...), Env: os.Environ(),
		CloseGrace: 500 * time.Millisecond, TermGrace: 500 * time.Millisecond,
		StartTimeout: time.Minute, // the machine may have much else to do
	}
	if change != nil {
		change(&cfg)
	}
	if os.Getenv("UPSTREAM_SHARED") != "" { // the same tests with a process that can be shared
		_, cfg.Share = sharing(t, 0)
	}
	spawner := upstream.NewSpawner([]string{self, "guard"})
	s, err := upstream.New(cfg, spawner)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Close()
		spawner.Close()
	})
	return s
}

func request(tool, params string) *call.Request {
	return &call.Request{Tool: &call.Tool{Name: tool, Original: tool, Server: "fix"}, Params: json.RawMessage(params)}
}

// do calls a tool with arguments and returns the raw result.
func do(ctx context.Context, s *upstream.Server, tool, arguments string) (string, error) {
	res, err := s.Call(ctx, request(tool, `{"name":"x","arguments":`+arguments+`}`))
	if err != nil {
		return "", err
	}
	return string(res.Raw), nil
}

func mustDo(t *testing.T, s *upstream.Server, tool, arguments string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	raw, err := do(ctx, s, tool, arguments)
	require.NoError(t, err)
	return raw
}

// endsSoon does what must not wait for long; why says what it means if it does.
func endsSoon(t *testing.T, do func(), why string) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do()
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error(why)
	}
}

// textOf returns the text of the first content block.
func textOf(t *testing.T, raw string) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	require.NoError(t, json.Unmarshal([]byte(raw), &r))
	require.NotEmpty(t, r.Content)
	return r.Content[0].Text
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		cfg  upstream.Config
		want string
	}{
		{upstream.Config{}, "name is empty"},
		{upstream.Config{Name: "a"}, "command is empty"},
		{upstream.Config{Name: "a", Command: []string{"relative"}}, "not an absolute path"},
		{upstream.Config{Name: "a", Command: []string{os.Args[0]}, Era: "old"}, "not one of auto, legacy, modern"},
	} {
		_, err := upstream.New(c.cfg, nil)
		require.ErrorContains(t, err, c.want)
	}
}

func TestBothErasListAndCall(t *testing.T) {
	for _, c := range []struct {
		serves string
		asked  upstream.Era
		found  upstream.Era
		more   []string
	}{
		{"both", upstream.Auto, upstream.Modern, nil},
		{"both", upstream.Legacy, upstream.Legacy, nil},
		{"both", upstream.Modern, upstream.Modern, nil},
		{"legacy", upstream.Auto, upstream.Legacy, nil},
		{"legacy", upstream.Auto, upstream.Legacy, []string{"-ignore-unknown"}},
		{"legacy", upstream.Auto, upstream.Legacy, []string{"-exit-unknown"}},
		{"legacy", upstream.Legacy, upstream.Legacy, []string{"-start", "noise"}},
		{"modern", upstream.Auto, upstream.Modern, []string{"-page", "5"}},
		{"modern", upstream.Modern, upstream.Modern, []string{"-start", "slow"}},
	} {
		t.Run(fmt.Sprint(c.serves, c.asked, c.more), func(t *testing.T) {
			t.Parallel()
			s := start(t, func(cfg *upstream.Config) {
				cfg.Era, cfg.ProbeTimeout = c.asked, time.Minute
				if slices.Contains(c.more, "-ignore-unknown") {
					cfg.ProbeTimeout = 500 * time.Millisecond
				}
			}, append([]string{"-era", c.serves}, c.more...)...)
			tools, err := s.Tools(t.Context())
			require.NoError(t, err)
			require.Equal(t, faultserver.Definition("echo"), string(tools[0]), "definitions are forwarded as received")
			require.Len(t, tools, 24)
			require.Equal(t, `{"a":1}`, textOf(t, mustDo(t, s, "echo", `{"a":1}`)))
			st := s.Status()
			require.Equal(t, c.found, st.Era)
			require.Equal(t, "ready", st.State)
			require.Equal(t, "fixture 1", st.Server)
			_, err = s.Ping(t.Context())
			require.NoError(t, err)
		})
	}
}

// A server of the modern version alone that starts slower than the probe waits
// is found all the same, over a pipe and over HTTP.
func TestAModernServerMayStartSlowly(t *testing.T) {
	t.Parallel()
	hurry := func(c *upstream.Config) { c.Era, c.ProbeTimeout = upstream.Auto, time.Nanosecond }
	for name, s := range map[string]*upstream.Server{
		"pipe": start(t, hurry, "-era", "modern", "-start", "slow"),
		"HTTP": reach(t, "/mcp", hurry, "-era", "modern"),
	} {
		require.Equal(t, `{"a":1}`, textOf(t, mustDo(t, s, "echo", `{"a":1}`)), name)
		require.Equal(t, upstream.Modern, s.Status().Era, name)
		require.Zero(t, s.Status().Restarts, name)
	}
}

func TestEraIsRememberedAcrossRestarts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	s := start(t, nil, "-era", "legacy", "-exit-unknown", "-pid", file)
	mustDo(t, s, "echo", `{}`)
	require.Len(t, pids(t, file), 2, "the first ends at the modern opening")
	_, err := do(t.Context(), s, "crash", `{}`)
	require.Error(t, err)
	mustDo(t, s, "echo", `{}`)
	require.Len(t, pids(t, file), 3)
}

func TestParamsReachTheServer(t *testing.T) {
	t.Parallel()
	modern := `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{"x":1}}`
	for _, c := range []struct {
		name, params string
		era          upstream.Era
		modern       bool
		want         string
	}{
		{"no params", ``, upstream.Legacy, false, `{"name":"params","arguments":{}}`},
		{"null arguments", `{"name":"a","arguments":null}`, upstream.Legacy, false, `{"name":"params","arguments":{}}`},
		{"bytes are kept", `{"name":"a","arguments":{"f": 1.0, "s":"<\u0041>","big":12345678901234567890},"more":{"ttl":1}}`, upstream.Legacy, false,
			`{"name":"params","more":{"ttl":1},"arguments":{"f": 1.0, "s":"<\u0041>","big":12345678901234567890}}`},
		{"line breaks", "{\"name\":\"a\",\n\"arguments\":{\r\n\"a\": \"b\\n\"\n}}", upstream.Legacy, false, `{"name":"params","arguments":{"a": "b\n"}}`},
		{"meta of the call is kept, of the era is not", `{"_meta":{"traceparent":"00-1","progressToken":"t",` + modern + `}}`, upstream.Legacy, true,
			`{"name":"params","arguments":{},"_meta":{"traceparent":"00-1"}}`},
		{"modern to modern", `{"_meta":{` + modern + `}}`, upstream.Modern, true, `{"name":"params","arguments":{},"_meta":{` + modern + `}}`},
		{"legacy to modern", `{"_meta":{"a":1}}`, upstream.Modern, false,
			`{"name":"params","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"toolroom","version":"0"},"io.modelcontextprotocol/clientCapabilities":{},"a":1}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, func(cfg *upstream.Config) { cfg.Era = c.era })
			req := request("params", c.params)
			req.Caller.Modern = c.modern
			res, err := s.Call(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, c.want, textOf(t, string(res.Raw)))
		})
	}
	s := start(t, nil)
	_, err := s.Call(t.Context(), request("params", `{"name":"a","name":"b"}`))
	require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err))
}

func TestResultsAreForwardedAsReceived(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, raw := range []string{
		`{"content":[{"type":"resource_link","uri":"x:y","icons":[{"src":"a","odd":1}]},{"type":"hologram","data":"<&>","n":1.0}],"x":{"b":1,"a":2},"structuredContent":[1]}`,
		`{"content":[],"_meta":{"k":12345678901234567890}}`,
		`{}`,
	} {
		require.Equal(t, raw, mustDo(t, s, "raw", `{"raw":`+raw+`}`))
	}
	require.Equal(t, `{"content":[]}`, mustDo(t, s, "both_members", `{}`), "a null error beside a result is tolerated")
	require.Equal(t, "caf\uFFFD", textOf(t, mustDo(t, s, "latin1", `{}`)))

	_, err := do(t.Context(), s, "rpcerror", `{}`)
	var answered *call.MCPError
	require.ErrorAs(t, err, &answered)
	require.Equal(t, `{"code":-32602,"message":"bad <args>","data":{"why":[1,2.0]},"odd":true}`, string(answered.Object))
	require.Equal(t, "fix", answered.Server)

	_, err = do(t.Context(), s, "malformed", `{}`)
	require.Equal(t, toolerr.ProtocolError, toolerr.CodeOf(err))
	for _, raw := range []string{`null`, `[1]`, `"text"`, `7`} { // no client takes these
		_, err = do(t.Context(), s, "raw", `{"raw":`+raw+`}`)
		require.Equal(t, toolerr.ProtocolError, toolerr.CodeOf(err), raw)
	}
	mustDo(t, s, "echo", `{}`)
}

func TestProgressComesBeforeTheAnswerWithTheCallersToken(t *testing.T) {
	t.Parallel()
	for _, era := range []upstream.Era{upstream.Legacy, upstream.Modern} {
		s := start(t, func(c *upstream.Config) { c.Era = era })
		var got []string
		req := request("progress", `{"arguments":{"n":500},"_meta":{"progressToken":"mine"}}`)
		req.OnNotify = func(method string, params json.RawMessage) {
			require.Equal(t, "notifications/progress", method)
			got = append(got, string(params))
		}
		_, err := s.Call(t.Context(), req)
		require.NoError(t, err)
		require.Len(t, got, 500)
		for i, params := range got {
			require.Equal(t, fmt.Sprintf(`{"progressToken":"mine","progress":%d,"total":500,"x-odd":1.0}`, i+1), params)
		}
		req = request("progress", `{"arguments":{"n":3}}`) // no token: none asked for
		req.OnNotify = func(string, json.RawMessage) { t.Error("not asked for") }
		_, err = s.Call(t.Context(), req)
		require.NoError(t, err)
	}
}

func TestCancelReachesTheServer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	mustDo(t, s, "echo", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := do(ctx, s, "sleep", `{"n":60000}`)
		ended <- err
	}()
	require.Eventually(t, func() bool { return upstream.Pending(s) == 1 }, time.Minute, time.Millisecond, "it is under way")
	cancel()
	err := <-ended
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, toolerr.Cancelled, toolerr.CodeOf(err))
	require.Eventually(t, func() bool { return textOf(t, mustDo(t, s, "cancelled", `{}`)) != "" }, time.Minute, 5*time.Millisecond)

	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = do(ctx, s, "hang", `{}`)
	require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err))
	mustDo(t, s, "echo", `{}`)
	require.Zero(t, s.Status().Restarts)
}

func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	echoAtOnce(t, s, 64, 30)
}

// echoAtOnce has callers call side by side, each several times, and requires
// that each gets its own answer.
func echoAtOnce(t *testing.T, s *upstream.Server, callers, calls int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range calls {
				want := fmt.Sprintf(`{"i":%d,"j":%d,"pad":"%s"}`, i, j, strings.Repeat("p", i*j))
				raw, err := do(t.Context(), s, "echo", want)
				if err != nil || textOf(t, raw) != want {
					t.Errorf("call %d %d: %v", i, j, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestLargeMessagesPass(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	big := `{"text":"` + strings.Repeat("y", 3<<20) + `"}`
	require.Equal(t, big, textOf(t, mustDo(t, s, "echo", big)))
	require.Len(t, textOf(t, mustDo(t, s, "blob", `{"n":5000000}`)), 5000000)
}

func TestNoGoroutineIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("use", func(t *testing.T) {
		s := start(t, nil)
		for range 5 {
			mustDo(t, s, "echo", `{}`)
			_, err := do(t.Context(), s, "crash", `{}`)
			require.Error(t, err)
		}
	})
	if !eventually(func() bool { return runtime.NumGoroutine() <= before }) {
		stacks := make([]byte, 1<<20)
		t.Fatalf("%d goroutines before, now:\n%s", before, stacks[:runtime.Stack(stacks, true)])
	}
}

// eventually polls in this goroutine, so that no other goroutine is counted.
func eventually(done func() bool) bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return done()
}

func TestRootsAreAnswered(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *upstream.Config) {
		c.Era = upstream.Legacy
		c.Roots = func() []string { return []string{"file:///a%20b"} }
	})
	require.Equal(t, `{"roots":[{"uri":"file:///a%20b"}]}`, textOf(t, mustDo(t, s, "roots", `{}`)))
	s = start(t, nil)
	require.Contains(t, textOf(t, mustDo(t, s, "roots", `{}`)), "-32601")
}

func TestListChangedIsFollowed(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{}, 10)
	s := start(t, func(c *upstream.Config) { c.Era = upstream.Legacy })
	s.OnChange(func() { changed <- struct{}{} })
	mustDo(t, s, "add_tool", `{"text":"late"}`)
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("not told")
	}
	tools, err := s.Tools(t.Context())
	require.NoError(t, err)
	require.Equal(t, faultserver.Definition("late"), string(tools[len(tools)-1]))
}

func TestEnvironmentIsTheConfiguredOne(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *upstream.Config) { c.Env = []string{"ONLY=this"} })
	require.Equal(t, "this", textOf(t, mustDo(t, s, "env", `{"text":"ONLY"}`)))
	require.Empty(t, textOf(t, mustDo(t, s, "env", `{"text":"PATH"}`)))
}
