package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// collector is one without a network: it answers with status, or refuses.
type collector struct {
	mu     sync.Mutex
	bodies []otlpRequest
	heads  []http.Header
	answer func(n int) (status int, body string, err error)
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var req otlpRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.bodies, c.heads = append(c.bodies, req), append(c.heads, r.Header)
	n := len(c.bodies)
	c.mu.Unlock()
	status, text := 200, "{}"
	if c.answer != nil {
		if status, text, err = c.answer(n); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Retry-After": {"7"}, "Location": {"http://elsewhere/"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// spans are all that came, in order.
func (c *collector) spans() (all []otlpSpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.bodies {
		all = append(all, b.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return all
}

func (c *collector) requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.bodies)
}

func attributes(s otlpSpan) map[string]string {
	m := map[string]string{}
	for _, a := range s.Attributes {
		m[a.Key] = a.Value.Text
	}
	return m
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		if i := slices.Index(pairs, name); i >= 0 {
			return pairs[i+1]
		}
		return ""
	}
}

// open makes a tracer that sends to a collector without a network.
func open(t *testing.T, pairs ...string) (*Tracer, *collector) {
	t.Helper()
	c, err := FromEnv(env(append(pairs, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/")...))
	require.NoError(t, err)
	require.True(t, c.IsOn())
	tracer, at := New(c, "1.2"), &collector{}
	tracer.client.Transport = at
	return tracer, at
}

func TestStage(t *testing.T) {
	stagetest.Run(t, func(t *testing.T) (call.Stage, func()) {
		tracer, _ := open(t, "OTEL_BSP_MAX_QUEUE_SIZE", "8")
		return tracer.Stage, tracer.Close
	})
}

func BenchmarkStages(b *testing.B) {
	tracer := New(Config{Sampler: Sampler{Ratio: 1}, Queue: 64, Batch: 64, Delay: time.Second}, "1")
	tracer.client.Transport = &collector{answer: func(int) (int, string, error) { return 400, "", nil }}
	defer tracer.Close()
	stagetest.Bench(b, func(next call.Handler) call.Handler { return tracer.Stage(tracer.UpstreamStage(next)) })
}

const (
	theirs = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	state  = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
)

// callWith makes one call with that _meta and returns the params that the
// server was sent.
func callWith(t *testing.T, tracer *Tracer, meta string, answer func() (*call.Result, error)) string {
	t.Helper()
	var sent string
	h := call.Chain(func(_ context.Context, req *call.Request) (*call.Result, error) {
		sent = string(req.Params)
		if answer == nil {
			return stagetest.Text("x"), nil
		}
		return answer()
	}, tracer.Stage, tracer.UpstreamStage)
	req := stagetest.Request("http session secret", `{"password":"hunter2"}`)
	req.Params = json.RawMessage(`{"name":"srv__echo","arguments":{"password":"hunter2"}` + meta + `}`)
	h(t.Context(), req) //nolint:errcheck // the span tells
	return sent
}

func TestACallIsTwoSpans(t *testing.T) {
	tracer, at := open(t, "OTEL_SERVICE_NAME", "mine", "OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=a%20b", "OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x")
	sent := callWith(t, tracer, `,"_meta":{"progressToken":7,"traceparent":"`+theirs+`","x":[1.0],"tracestate":"`+state+`"}`, nil)
	tracer.Close()
	spans := at.spans()
	require.Len(t, spans, 2)
	inner, outer := spans[0], spans[1]
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", outer.TraceID)
	require.Equal(t, "00f067aa0ba902b7", outer.Parent)
	require.Equal(t, outer.TraceID, inner.TraceID)
	require.Equal(t, outer.SpanID, inner.Parent)
	require.Equal(t, []string{state, state}, []string{inner.State, outer.State})
	require.Equal(t, []int{kindClient, kindServer}, []int{inner.Kind, outer.Kind})
	require.Equal(t, []int{0x101, 0x301}, []int{inner.Flags, outer.Flags})
	require.Equal(t, []string{"tools/call echo", "tools/call srv__echo"}, []string{inner.Name, outer.Name})
	require.Equal(t, map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "echo", "toolroom.server": "srv",
	}, attributes(inner))
	require.Equal(t, map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "srv__echo",
		"network.transport": "tcp", "network.protocol.name": "http",
	}, attributes(outer))
	require.LessOrEqual(t, outer.Start, inner.Start)
	require.Equal(t, `{"name":"srv__echo","arguments":{"password":"hunter2"},"_meta":{"traceparent":"00-`+inner.TraceID+`-`+inner.SpanID+`-01","progressToken":7,"x":[1.0],"tracestate":"`+state+`"}}`, sent)

	resource := at.bodies[0].ResourceSpans[0]
	require.Equal(t, map[string]string{"service.name": "mine", "team": "a b", "service.version": "1.2"}, attributes(otlpSpan{Attributes: resource.Resource.Attributes}))
	require.Equal(t, "Bearer x", at.heads[0].Get("Authorization"))
	require.Equal(t, "application/json", at.heads[0].Get("Content-Type"))
	raw, err := json.Marshal(at.bodies)
	require.NoError(t, err)
	for _, secret := range []string{"hunter2", "session secret"} {
		require.NotContains(t, string(raw), secret)
	}
}

func TestWhatCannotBeReadIsNoParent(t *testing.T) {
	tracer, at := open(t)
	for _, meta := range []string{
		``, `,"_meta":null`, `,"_meta":{}`, `,"_meta":7`,
		`,"_meta":{"traceparent":7,"tracestate":"a=b"}`,
		`,"_meta":{"traceparent":"` + strings.ToUpper(theirs) + `","tracestate":"a=b"}`,
	} {
		sent := callWith(t, tracer, meta, nil)
		require.Regexp(t, `^\{"name":"srv__echo","arguments":\{"password":"hunter2"\},"_meta":\{"traceparent":"00-[0-9a-f]{32}-[0-9a-f]{16}-01"\}\}$`, sent, meta)
	}
	tracer.Close()
	for i, s := range at.spans() {
		require.Equal(t, i%2 == 1, s.Parent == "", "the outer one has no parent")
		require.Empty(t, s.State)
	}
	for text, want := range map[string]bool{
		theirs:                               true,
		theirs[:53] + "00":                   true,
		"01" + theirs[2:]:                    true,
		"01" + theirs[2:] + "-more":          true,
		"01" + theirs[2:] + "more":           false,
		theirs + "-more":                     false,
		"ff" + theirs[2:]:                    false,
		"zz" + theirs[2:]:                    false,
		theirs[:54]:                          false,
		"":                                   false,
		strings.ReplaceAll(theirs, "-", "_"): false,
		"00-" + strings.Repeat("0", 32) + theirs[35:]:       false,
		theirs[:36] + strings.Repeat("0", 16) + "-01":       false,
		"00-4bf92f3577b34da6a3ce929d0e0e473g" + theirs[35:]: false,
	} {
		_, ok := parseTraceparent(text)
		require.Equal(t, want, ok, text)
	}
}

func TestFailures(t *testing.T) {
	for want, answer := range map[string]func() (*call.Result, error){
		"tool_error": func() (*call.Result, error) { return &call.Result{Raw: []byte(`{"isError":true,"content":[]}`)}, nil },
		"TIMEOUT":    func() (*call.Result, error) { return nil, &call.TimeoutError{Tool: "t", After: time.Second} },
		"-32602": func() (*call.Result, error) {
			return nil, &call.MCPError{Server: "s", Code: -32602, Message: "no <such> tool"}
		},
		"DENIED_PATH": func() (*call.Result, error) { return nil, toolerr.New(toolerr.DeniedPath, "/secret/path") },
	} {
		tracer, at := open(t)
		callWith(t, tracer, "", answer)
		tracer.Close()
		for _, s := range at.spans() {
			require.Equal(t, want, attributes(s)["error.type"])
			require.Equal(t, statusError, s.Status.Code)
			if want == "-32602" {
				require.Equal(t, "-32602", attributes(s)["rpc.response.status_code"])
				require.Equal(t, "no <such> tool", s.Status.Message)
			} else {
				require.Empty(t, s.Status.Message)
			}
		}
		require.Len(t, at.spans(), 2)
	}
}

func TestMessages(t *testing.T) {
	tracer, at := open(t)
	var sent []string
	f := tracer.TraceForward(func(_ context.Context, m *call.UpstreamRequest) (json.RawMessage, error) {
		sent = append(sent, string(m.Params))
		return nil, nil
	})
	for _, m := range []call.UpstreamRequest{
		{Server: "s", Method: "prompts/get", Params: json.RawMessage(`{"name":"greet"}`), Caller: call.Caller{EntryPoint: "stdio", Modern: true}},
		{Server: "s", Method: "resources/read", Params: json.RawMessage(`{"uri":"file:///a"}`), Caller: call.Caller{EntryPoint: "http", Depth: 2}},
		{Server: "s", Method: "completion/complete"},
	} {
		_, err := f(t.Context(), &m)
		require.NoError(t, err)
	}
	tracer.Close()
	var names []string
	for _, s := range at.spans() {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"prompts/get greet", "prompts/get greet", "resources/read", "resources/read", "completion/complete", "completion/complete"}, names)
	require.Equal(t, map[string]string{"mcp.method.name": "prompts/get", "gen_ai.prompt.name": "greet", "network.transport": "pipe", "mcp.protocol.version": "2026-07-28"}, attributes(at.spans()[1]))
	require.Equal(t, map[string]string{"mcp.method.name": "resources/read", "mcp.resource.uri": "file:///a", "network.transport": "unix", "toolroom.depth": "2"}, attributes(at.spans()[3]))
	for _, params := range sent {
		require.Contains(t, params, `"_meta":{"traceparent":"00-`)
	}
}

func TestWhoIsSampled(t *testing.T) {
	unsampled := theirs[:53] + "00"
	for _, c := range []struct {
		sampler, arg string
		parent       string
		want         bool
	}{
		{"", "", "", true}, {"", "", theirs, true}, {"", "", unsampled, false},
		{"always_on", "", unsampled, true}, {"always_off", "", theirs, false},
		{"parentbased_always_off", "", "", false}, {"parentbased_always_off", "", theirs, true},
		{"traceidratio", "0", theirs, false}, {"traceidratio", "1", unsampled, true}, {"traceidratio", "", unsampled, true},
		{"parentbased_traceidratio", "0", "", false}, {"parentbased_traceidratio", "0", theirs, true},
		{"traceidratio", "0.65", theirs, true}, {"traceidratio", "0.63", theirs, false}, // 0xa3ce… is 0.6398 of all
	} {
		tracer, at := open(t, "OTEL_TRACES_SAMPLER", c.sampler, "OTEL_TRACES_SAMPLER_ARG", c.arg)
		meta := ""
		if c.parent != "" {
			meta = `,"_meta":{"traceparent":"` + c.parent + `"}`
		}
		sent := callWith(t, tracer, meta, nil)
		tracer.Close()
		require.Equal(t, c.want, len(at.spans()) == 2, c)
		flag := map[bool]string{true: `-01"`, false: `-00"`}[c.want]
		require.Contains(t, sent, flag, "the choice is told to the server")
	}
}

func TestTheEnvironment(t *testing.T) {
	for _, pairs := range [][]string{
		{}, {"OTEL_SERVICE_NAME", "x"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1", "OTEL_SDK_DISABLED", "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1", "OTEL_TRACES_EXPORTER", "none"},
	} {
		c, err := FromEnv(env(pairs...))
		require.NoError(t, err)
		require.False(t, c.IsOn(), pairs)
	}
	for text, pairs := range map[string][]string{
		"not an http or https URL":          {"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"},
		"use http/json":                     {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
		"HEADERS: the entry 2 is not":       {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1", "OTEL_EXPORTER_OTLP_HEADERS", "a=b,sekrit"},
		"HEADERS: the entry 1 is not":       {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1", "OTEL_EXPORTER_OTLP_HEADERS", "a=sekrit%0d%0ab"},
		"ATTRIBUTES: the entry 1 is not":    {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1", "OTEL_RESOURCE_ATTRIBUTES", "sekrit%"},
		`SAMPLER "sometimes" is not one of`: {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1", "OTEL_TRACES_SAMPLER", "sometimes"},
		`ARG "2" is not a number from 0`:    {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1", "OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "2"},
		`ARG "NaN" is not a number from 0`:  {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1", "OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "NaN"},
	} {
		c, err := FromEnv(env(pairs...))
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, "tracing is off: ")
		require.NotContains(t, err.Error(), "sekrit")
		require.Equal(t, Config{}, c)
	}
	c, err := FromEnv(env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1/base/", "OTEL_BSP_SCHEDULE_DELAY", "x", "OTEL_BSP_MAX_QUEUE_SIZE", "100", "OTEL_EXPORTER_OTLP_TIMEOUT", "250"))
	require.NoError(t, err)
	require.Equal(t, Config{
		URL: "http://h:1/base/v1/traces", Headers: map[string]string{}, Timeout: 250 * time.Millisecond, Resource: map[string]string{"service.name": "mcp-host"},
		Sampler: Sampler{Parent: true, Ratio: 1}, Queue: 100, Batch: 100, Delay: 5 * time.Second,
	}, c)
	c, err = FromEnv(env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t:2/here"))
	require.NoError(t, err)
	require.Equal(t, "https://t:2/here", c.URL)
}

// A collector that hangs or is gone costs the calls nothing but their spans.
func TestWhatIsNotTakenIsDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, at := open(t, "OTEL_BSP_MAX_QUEUE_SIZE", "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
		release := make(chan struct{})
		at.answer = func(int) (int, string, error) { <-release; return 200, `{"partialSuccess":{"rejectedSpans":"1"}}`, nil }
		for n := range 100 {
			callWith(t, tracer, "", nil)
			if n == 1 {
				synctest.Wait() // until the first four are with the collector
			}
		}
		_, dropped, _ := tracer.Sent()
		require.EqualValues(t, 200-10-4, dropped)
		close(release)
		tracer.Close()
		sent, dropped, err := tracer.Sent()
		require.NoError(t, err)
		require.EqualValues(t, 200, sent+dropped)
		require.EqualValues(t, 14-4, sent, "four requests, of each one was rejected")
		callWith(t, tracer, "", nil) // after the end it is nobody's
	})
}

func TestACollectorThatIsBusyIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, at := open(t)
		begin := time.Now()
		at.answer = func(n int) (int, string, error) {
			switch n {
			case 1:
				return 503, "", nil
			case 2:
				return 0, "", errors.New("connection refused")
			}
			return 200, "", nil
		}
		callWith(t, tracer, "", nil)
		for at.requests() < 3 {
			time.Sleep(100 * time.Millisecond)
		}
		require.GreaterOrEqual(t, time.Since(begin), 5*time.Second+7*time.Second+2*time.Second, "5 s for others, 7 s as it said, 2 s")
		synctest.Wait()
		sent, dropped, err := tracer.Sent()
		require.NoError(t, err)
		require.Equal(t, []int64{2, 0}, []int64{sent, dropped})
		tracer.Close()
	})
}

func TestACollectorThatRefusesIsNot(t *testing.T) {
	for _, status := range []int{400, 401, 404, 500, 302} {
		tracer, at := open(t)
		at.answer = func(int) (int, string, error) { return status, "", nil }
		callWith(t, tracer, "", nil)
		tracer.Close()
		sent, dropped, err := tracer.Sent()
		require.ErrorContains(t, err, "the collector answered")
		require.Equal(t, []int64{0, 2}, []int64{sent, dropped})
		require.Equal(t, 1, at.requests(), "headers are sent nowhere else either")
	}
}

// The end of the host waits two seconds at most, and not at all for another
// try.
func TestTheEndIsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, at := open(t)
		at.answer = func(int) (int, string, error) { return 0, "", errors.New("connection refused") }
		callWith(t, tracer, "", nil)
		begin := time.Now()
		tracer.Close()
		require.Zero(t, time.Since(begin))
		require.Equal(t, 1, at.requests())

		tracer, _ = open(t)
		tracer.client.Transport = hanging{}
		callWith(t, tracer, "", nil)
		begin = time.Now()
		tracer.Close()
		tracer.Close()
		require.Equal(t, 2*time.Second, time.Since(begin))
		_, dropped, err := tracer.Sent()
		require.Error(t, err)
		require.EqualValues(t, 2, dropped)
	})
	tracer, at := open(t) // one that was never used has nothing to end
	tracer.Close()
	require.Zero(t, at.requests())
}

type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestLongValuesAreCut(t *testing.T) {
	long := attributeOf("k", strings.Repeat("é", 2000)).Value.Text
	require.Less(t, len(long), maxValue+10)
	require.True(t, strings.HasSuffix(long, "é…"))
	require.NotContains(t, bytes.ToValidUTF8([]byte(long), []byte("!")), "!")
}
