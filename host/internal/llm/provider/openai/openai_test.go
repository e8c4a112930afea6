package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/openai"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
)

func open(t *testing.T, cfg openai.Config, f http.HandlerFunc) *openai.Model {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	cfg.Config = endpoint.Config{Name: "test", BaseURL: s.URL, Retry: retry.Policy{Base: time.Millisecond}}
	cfg.Model = "m"
	return openai.New(cfg)
}

func events(t *testing.T, list ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range list {
			io.WriteString(w, "data: "+e+"\n\n") //nolint:errcheck // the test sees
		}
	}
}

func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

func ask(t *testing.T, m *openai.Model, tools ...llm.Tool) *llm.Response {
	t.Helper()
	var s llm.ResponseBuilder
	res, err := m.Ask(t.Context(), &llm.Request{Messages: []llm.Message{{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: "hi"}}}}, Tools: tools}, s.Add)
	require.NoError(t, err)
	s.FinishCalls()
	require.Equal(t, res.Parts, s.Response.Parts)
	return res
}

func calls(r *llm.Response) (all []string) {
	for _, c := range r.Calls() {
		all = append(all, c.ID+" "+c.Name+" "+string(c.Args)+c.Malformed)
	}
	return all
}

// What servers that are compatible do otherwise.
func TestQuirks(t *testing.T) {
	const end = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	for name, c := range map[string]struct {
		events []string
		want   []string
	}{
		"no index, whole calls": {[]string{
			delta(`{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}]}`), delta(`{"tool_calls":[{"id":"b","function":{"name":"x","arguments":"{\"n\":2}"}}]}`), end, "[DONE]",
		}, []string{`a x {"n":1}`, `b x {"n":2}`}},
		"no index, fragments": {[]string{
			delta(`{"tool_calls":[{"id":"a","function":{"name":"x","arguments":""}}]}`), delta(`{"tool_calls":[{"function":{"arguments":"{\"n\""}}]}`), delta(`{"tool_calls":[{"id":"a","function":{"arguments":":1}"}}]}`),
			delta(`{"tool_calls":[{"id":"b","function":{"name":"y"}}]}`), end,
		}, []string{`a x {"n":1}`, `b y {}`}},
		"index 0 for every call": {[]string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}`), delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}]}`), end,
		}, []string{"a x {}", "b y {}"}},
		"no ids, no index": {[]string{
			`{"id":"chatcmpl-7","choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"x","arguments":{"n":1}}}]}}]}`, delta(`{"tool_calls":[{"function":{"name":"y","arguments":"{}"}}]}`), end,
		}, []string{`call_a7_1 x {"n":1}`, `call_a7_2 y {}`}},
		"the name and the id again": {[]string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\""}}]}`), delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":":1}"}}]}`), end,
		}, []string{`a x {"n":1}`}},
		"interleaved": {[]string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\""}},{"index":1,"id":"b","function":{"name":"y","arguments":"{\"m\""}}]}`),
			delta(`{"tool_calls":[{"index":1,"function":{"arguments":":2}"}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`), end,
		}, []string{`a x {"n":1}`, `b y {"m":2}`}},
		"an id twice, then no index": {[]string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"y","arguments":"{\"n\""}}]}`),
			delta(`{"tool_calls":[{"id":"a","function":{"arguments":":1}"}}]}`), end,
		}, []string{"a x {}", `a y {"n":1}`}},
		"the old form": {[]string{
			`{"id":"q","choices":[{"index":0,"delta":{"function_call":{"name":"x","arguments":"{"}}}]}`, delta(`{"function_call":{"arguments":"}"}}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}`,
		}, []string{"call_aq_1 x {}"}},
		"stop after calls": {[]string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]",
		}, []string{"a x {}"}},
		"done without a reason": {[]string{delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}`), " [DONE] "}, []string{"a x {}"}},
	} {
		res := ask(t, open(t, openai.Config{}, events(t, c.events...)))
		require.Equal(t, c.want, calls(res), name)
		require.Equal(t, llm.StopCalls, res.StopReason, name)
		require.Contains(t, []string{"tool_calls", "function_call"}, res.VendorStop, name)
	}
	res := ask(t, open(t, openai.Config{}, events(t, delta(`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"reasoning":"r"}`), `{"choices":[{"index":1,"delta":{"content":"no"}}]}`, "[DONE]")))
	require.Equal(t, []llm.Part{{Type: llm.ThinkingPart, Text: "r"}, {Type: llm.TextPart, Text: "ab"}}, res.Parts)
	require.Equal(t, llm.StopEnd, res.StopReason)
	require.Nil(t, res.Usage)
	res = ask(t, open(t, openai.Config{}, events(t, delta("{\"content\":\"a\xe6\x97 b\"}"), "[DONE]")))
	require.Equal(t, "a\ufffd b", res.Parts[0].Text, "a character that was cut in two")
}

// An answer of more calls than anybody makes is none, however it comes.
func TestTooManyCalls(t *testing.T) {
	var all []string
	for i := range 5000 {
		all = append(all, fmt.Sprintf(`{"id":"a%d","function":{"name":"x","arguments":"{}"}}`, i))
	}
	list := strings.Join(all, ",")
	for _, f := range []http.HandlerFunc{
		events(t, `{"choices":[{"index":0,"delta":{"tool_calls":[`+list+`]},"finish_reason":"tool_calls"}]}`, "[DONE]"),
		func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"choices":[{"message":{"tool_calls":[`+list+`]},"finish_reason":"tool_calls"}]}`) //nolint:errcheck // the test sees
		},
	} {
		_, err := open(t, openai.Config{}, f).Ask(t.Context(), &llm.Request{}, func(llm.Delta) {})
		require.ErrorContains(t, err, "more than 4096 parts")
	}
}

// A refusal that names a parameter is answered without it, and it is not sent again.
func TestParametersThatAreRefused(t *testing.T) {
	var bodies []string
	m := open(t, openai.Config{Extra: json.RawMessage(`{"reasoning_effort":"low","model":"not this"}`)}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) //nolint:errcheck // the test sees
		bodies = append(bodies, string(body))
		for _, name := range []string{"stream_options", `"max_tokens"`} {
			if strings.Contains(string(body), name) {
				w.WriteHeader(http.StatusUnprocessableEntity)
				io.WriteString(w, `{"error":{"message":"unsupported: `+strings.Trim(name, `"`)+`, use max_completion_tokens"}}`) //nolint:errcheck // the test sees
				return
			}
		}
		events(t, `{"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}`)(w, r)
	})
	for range 2 {
		res, err := m.Ask(t.Context(), &llm.Request{MaxTokens: 5}, func(llm.Delta) {})
		require.NoError(t, err)
		require.Equal(t, "ok", res.Parts[0].Text)
	}
	require.Len(t, bodies, 4)
	require.JSONEq(t, `{"model":"m","messages":[],"max_completion_tokens":5,"stream":true,"reasoning_effort":"low"}`, bodies[3])
}

// Arguments that the model wrote for a schema that it is held to come as the tool
// takes them, in the pieces, too.
func TestStrictArgumentsAreRestored(t *testing.T) {
	tool := llm.Tool{Name: "files.read everything", Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"]}`)}
	sent := ""
	m := open(t, openai.Config{Strict: true}, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Tools []struct {
				Function struct {
					Name   string
					Strict bool
				}
			}
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil || !body.Tools[0].Function.Strict {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		sent = body.Tools[0].Function.Name
		events(t, delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"`+sent+`","arguments":"{\"path\":\"a\","}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":"\"limit\":null}"}}]}`),
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`)(w, r)
	})
	require.Equal(t, []string{`a files.read everything {"path":"a"}`}, calls(ask(t, m, tool)))
	require.Regexp(t, `^[a-zA-Z0-9_-]{1,64}$`, sent)
}

func TestList(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/models" || r.Header.Get("Authorization") != "Bearer k" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, `{"object":"list","data":[{"id":"a"},{"id":"b"},{}]}`) //nolint:errcheck // the test sees
	}))
	defer s.Close()
	names, _, err := openai.ListModels(t.Context(), openai.Config{Config: endpoint.Config{BaseURL: s.URL, Key: "k"}})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
}
