package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation/responsestore"
	"github.com/toolroom-mcp/toolroom/host/internal/httpapi"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const responseTools = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}},` +
	`{"type":"custom","name":"patch","description":"apply a patch","format":{"type":"grammar","syntax":"lark","definition":"start: /.+/"}},` +
	`{"type":"namespace","name":"agents","description":"x","tools":[{"type":"function","name":"spawn","parameters":{"type":"object"}}]},` +
	`{"type":"web_search"},{"type":"local_shell"}]`

// writeSession checks the events of a stream as OpenAI sends them, and returns the response.
func writeSession(t *testing.T, stream string) map[string]any {
	t.Helper()
	type item struct{ added, done, text, final string }
	items := map[float64]*item{}
	all := eventsOf(t, stream)
	require.Equal(t, "response.created", all[0].event)
	require.Equal(t, "response.in_progress", all[1].event)
	id := at(all[0].data, "response", "id")
	for _, e := range all[:2] {
		require.Empty(t, at(e.data, "response", "output"))
		require.Equal(t, "in_progress", at(e.data, "response", "status"))
	}
	for i, e := range all {
		require.Equal(t, e.event, e.data["type"])
		require.EqualValues(t, i, e.data["sequence_number"])
		index, _ := e.data["output_index"].(float64)
		now := items[index]
		if e.data["item_id"] != nil {
			require.NotNil(t, now, e.text)
			require.Equal(t, now.added, e.data["item_id"])
			require.Empty(t, now.done)
		}
		switch e.event {
		case "response.output_item.added":
			require.Nil(t, now)
			require.EqualValues(t, len(items), index)
			items[index] = &item{added: at(e.data, "item", "id").(string)}
		case "response.output_text.delta", "response.refusal.delta", "response.function_call_arguments.delta", "response.custom_tool_call_input.delta", "response.reasoning_summary_text.delta":
			now.text += e.data["delta"].(string)
		case "response.output_text.done", "response.reasoning_summary_text.done":
			require.Equal(t, now.text, e.data["text"])
		case "response.function_call_arguments.done":
			require.Equal(t, now.text, e.data["arguments"])
		case "response.custom_tool_call_input.done":
			require.Equal(t, now.text, e.data["input"])
		case "response.output_item.done":
			final, err := json.Marshal(e.data["item"])
			require.NoError(t, err)
			now.done, now.final = at(e.data, "item", "id").(string), string(final)
			require.Equal(t, now.added, now.done)
		}
	}
	last := all[len(all)-1]
	require.Contains(t, []string{"response.completed", "response.incomplete"}, last.event)
	require.Equal(t, id, at(last.data, "response", "id"))
	require.Len(t, at(last.data, "response", "output"), len(items))
	for i, out := range at(last.data, "response", "output").([]any) {
		text, err := json.Marshal(out)
		require.NoError(t, err)
		require.JSONEq(t, items[float64(i)].final, string(text))
	}
	return last.data["response"].(map[string]any)
}

// respond asks for a response, streamed or not.
func (s *scene) respond(t *testing.T, stream bool, body string) map[string]any {
	t.Helper()
	status, text, _ := s.text(t, "POST", "/v1/responses", fmt.Sprintf(`{"stream":%v,%s}`, stream, body))
	require.Equal(t, 200, status, text)
	if stream {
		return writeSession(t, text)
	}
	return parsed(t, text)
}

func TestAResponse(t *testing.T) {
	for _, stream := range []bool{false, true} {
		think := script(&llm.Response{
			Parts:      []llm.Part{{Type: llm.ThinkingPart, Text: "hm"}, {Type: llm.TextPart, Text: "Hello."}},
			StopReason: llm.StopEnd, Usage: &llm.Usage{Input: 10, CacheRead: 4, Output: 5, Reasoning: 2},
		})
		s := newScene(t, nil, think)
		v := s.respond(t, stream, `"model":"m","instructions":"be brief","input":[{"role":"developer","content":"in English"},
			{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"data:image/png;base64,QUJD"}]}],
			"temperature":0.5,"max_output_tokens":7,"metadata":{"a":"b"},"reasoning":{"effort":"low"}`)
		require.Equal(t, []string{"system: be brief", "developer: in English", "user: hi [image/png]"}, s.last())
		require.Equal(t, 7, s.asked[0].MaxTokens)
		require.InDelta(t, 0.5, *s.asked[0].Temperature, 0)
		require.Equal(t, "response", v["object"])
		require.Equal(t, "completed", v["status"])
		require.Regexp(t, `^resp_\w+$`, v["id"])
		require.Equal(t, "reasoning", at(v, "output", 0, "type"))
		require.Equal(t, "hm", at(v, "output", 0, "summary", 0, "text"))
		require.Equal(t, "assistant", at(v, "output", 1, "role"))
		require.Equal(t, "output_text", at(v, "output", 1, "content", 0, "type"))
		require.Equal(t, "Hello.", at(v, "output", 1, "content", 0, "text"))
		require.Equal(t, map[string]any{
			"input_tokens": 10.0, "input_tokens_details": map[string]any{"cached_tokens": 4.0, "cache_write_tokens": 0.0},
			"output_tokens": 5.0, "output_tokens_details": map[string]any{"reasoning_tokens": 2.0}, "total_tokens": 15.0,
		}, v["usage"])
		require.Equal(t, "be brief", v["instructions"])
		require.Equal(t, map[string]any{"a": "b"}, v["metadata"])
		require.EqualValues(t, 7, v["max_output_tokens"])
		require.Equal(t, true, v["store"])
		require.Nil(t, v["error"])
		require.NotContains(t, v, "x_ending")
	}
}

// The host's calls are made between the messages; calls of the client's tools are items,
// in the form that their tools were declared in, and the outputs go on with them, with or
// without the host having stored the response.
func TestAResponseCallsToolsOfBothSides(t *testing.T) {
	answers := func() func(*llm.Request, func(llm.Delta)) (*llm.Response, error) {
		return script(calls("I look.", "echo", `{"text":"first"}`),
			calls("Both.", "echo", `{"text":"a"}`, "weather", `{"city":"Bonn"}`, "patch", `{"input":"*** Begin\n"}`, "agents__spawn", `{}`), says("Rain."))
	}
	for _, stream := range []bool{false, true} {
		for _, way := range []string{"previous_response_id", "items", "item_reference"} {
			s := newScene(t, nil, answers())
			v := s.respond(t, stream, fmt.Sprintf(`"input":"go","store":%v,%s`, way != "items", responseTools))
			require.Equal(t, "completed", v["status"])
			var kinds []any
			for _, item := range v["output"].([]any) {
				kinds = append(kinds, at(item, "type"))
				require.Equal(t, "completed", at(item, "status"))
			}
			require.Equal(t, []any{"message", "message", "function_call", "custom_tool_call", "function_call"}, kinds)
			require.Equal(t, `{"city":"Bonn"}`, at(v, "output", 2, "arguments"))
			require.Equal(t, "*** Begin\n", at(v, "output", 3, "input"))
			require.Equal(t, "patch", at(v, "output", 3, "name"))
			require.Equal(t, "spawn", at(v, "output", 4, "name"))
			require.Equal(t, "agents", at(v, "output", 4, "namespace"))
			require.Equal(t, []string{`echo{"text":"first"}`, `echo{"text":"a"}`}, s.called)
			require.Contains(t, s.asked[0].Tools[len(s.asked[0].Tools)-2].Description, "start: /.+/")

			outputs := ""
			for i, text := range []string{`"wet"`, `[{"type":"input_text","text":"applied"}]`, `""`} {
				kind := strings.TrimSuffix(at(v, "output", 2+i, "type").(string), "_call")
				outputs += fmt.Sprintf(`,{"type":"%s_call_output","call_id":%q,"output":%s}`, kind, at(v, "output", 2+i, "call_id"), text)
			}
			switch way {
			case "previous_response_id":
				v = s.respond(t, stream, fmt.Sprintf(`"previous_response_id":%q,"input":[%s],%s`, v["id"], outputs[1:], responseTools))
				require.NotNil(t, v["previous_response_id"])
			case "items":
				items, err := json.Marshal(v["output"])
				require.NoError(t, err)
				items = append([]byte(`[{"type":"message","role":"user","content":"go"},{"type":"reasoning","id":"rs_1","summary":[]},`), items[1:len(items)-1]...)
				v = s.respond(t, stream, fmt.Sprintf(`"input":%s%s],"store":false,%s`, items, outputs, responseTools))
			case "item_reference":
				items := `{"role":"user","content":"go"}`
				for _, item := range v["output"].([]any) {
					items += fmt.Sprintf(`,{"type":"item_reference","id":%q}`, at(item, "id"))
				}
				v = s.respond(t, stream, fmt.Sprintf(`"input":[%s%s],%s`, items, outputs, responseTools))
			}
			require.Equal(t, "Rain.", at(v, "output", 0, "content", 0, "text"))
			require.Equal(t, []string{
				"user: go", `assistant: I look. echo{"text":"first"}`, "tool: <echo: first>",
				`assistant: Both. echo{"text":"a"} weather{"city":"Bonn"} patch{"input":"*** Begin\n"} agents__spawn{}`, "tool: <echo: a> <wet> <applied> <>",
			}, s.last(), way)
		}
	}
}

func TestToolsThatOpenAIRunsAreNamedAsIgnored(t *testing.T) {
	s := newScene(t, nil, script(says("ok")))
	status, text, header := s.text(t, "POST", "/v1/responses", `{"input":[{"role":"user","content":"go"},{"type":"web_search_call","id":"ws_1","status":"completed"}],
		"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{},"reasoning":{"summary":"auto"},"text":{"verbosity":"low"},`+responseTools+`}`)
	require.Equal(t, 200, status, text)
	require.Equal(t, "input.web_search_call, tools.web_search, tools.local_shell, prompt_cache_key, client_metadata, reasoning, text.verbosity", header.Get("X-Toolroom-Ignored"))
	require.Len(t, s.asked[0].Tools, 6)
}

// A conversation goes on with any of its responses, for the caller it belongs to.
func TestResponsesAreGoneOnWith(t *testing.T) {
	s := newScene(t, nil, script(calls("", "echo", `{"text":"a"}`), says("one"), says("two"), says("fork"), says("other")))
	first := s.respond(t, false, `"input":"q1","instructions":"only now"`)["id"]
	second := s.respond(t, true, fmt.Sprintf(`"input":"q2","previous_response_id":%q`, first))["id"]
	require.Equal(t, []string{"user: q1", `assistant: echo{"text":"a"}`, "tool: <echo: a>", "assistant: one", "user: q2"}, s.last())
	s.respond(t, false, fmt.Sprintf(`"input":"q3","previous_response_id":%q,"instructions":"new"`, first))
	require.Equal(t, []string{"system: new", "user: q1", `assistant: echo{"text":"a"}`, "tool: <echo: a>", "assistant: one", "user: q3"}, s.last())

	status, v, _ := s.do(t, "GET", fmt.Sprintf("/v1/responses/%s", second), "")
	require.Equal(t, 200, status)
	require.Equal(t, second, v["id"])
	require.Equal(t, "two", at(v, "output", 0, "content", 0, "text"))
	require.Equal(t, first, v["previous_response_id"])
	_, v, _ = s.do(t, "GET", fmt.Sprintf("/v1/responses/%s/input_items", second), "")
	require.Len(t, v["data"], 1)
	require.Equal(t, "q2", at(v, "data", 0, "content", 0, "text"))
	require.NotEmpty(t, at(v, "data", 0, "id"))

	refused := func(body string) {
		t.Helper()
		status, v, _ := s.do(t, "POST", "/v1/responses", body)
		require.Equal(t, 400, status, v)
		require.Equal(t, "previous_response_not_found", at(v, "error", "code"))
		require.Equal(t, "previous_response_id", at(v, "error", "param"))
	}
	refused(`{"input":"x","previous_response_id":"resp_unknown"}`)
	refused(fmt.Sprintf(`{"input":"x","previous_response_id":%q,"user":"somebody else"}`, second))
	status, _, _ = s.do(t, "DELETE", fmt.Sprintf("/v1/responses/%s", first), "")
	require.Equal(t, 200, status)
	refused(fmt.Sprintf(`{"input":"x","previous_response_id":%q}`, first))
	refused(fmt.Sprintf(`{"input":"x","previous_response_id":%q}`, second)) // half a conversation is none
	for _, path := range []string{"", "/input_items"} {
		status, v, _ = s.do(t, "GET", fmt.Sprintf("/v1/responses/%s%s", first, path), "")
		require.Equal(t, 404, status)
		require.Equal(t, "invalid_request_error", at(v, "error", "type"))
	}
	id := s.respond(t, false, `"input":"x","store":false`)["id"]
	refused(fmt.Sprintf(`{"input":"x","previous_response_id":%q}`, id))
}

func TestInputItemsComeInPages(t *testing.T) {
	s := newScene(t, nil, script(says("ok")))
	id := s.respond(t, false, `"input":[{"role":"user","content":"1"},{"role":"user","content":"2","id":"msg_own"},{"role":"user","content":"3"}]`)["id"]
	page := func(query string, want int) (texts string, v map[string]any) {
		t.Helper()
		status, v, _ := s.do(t, "GET", fmt.Sprintf("/v1/responses/%s/input_items?%s", id, query), "")
		require.Equal(t, want, status, v)
		items, _ := v["data"].([]any)
		for _, item := range items {
			texts += at(item, "content").(string)
		}
		return texts, v
	}
	texts, _ := page("", 200)
	require.Equal(t, "321", texts)
	texts, v := page("order=asc&limit=2", 200)
	require.Equal(t, "12", texts)
	require.Equal(t, true, v["has_more"])
	require.Equal(t, "msg_own", v["last_id"])
	texts, v = page("order=asc&after=msg_own", 200)
	require.Equal(t, "3", texts)
	require.Equal(t, false, v["has_more"])
	for _, query := range []string{"limit=0", "limit=101", "limit=x", "order=up", "after=nothing"} {
		page(query, 400)
	}
}

func TestResponsesThatAreRefused(t *testing.T) {
	s := newScene(t, nil, script())
	for body, param := range map[string]string{
		`{`: "", `{}`: "input", `{"input":[]}`: "input", `{"input":7}`: "input", `{"input":[{"content":"x"}]}`: "/input/0",
		`{"input":[{"role":"tool","content":"x"}]}`:                                                     "input/0",
		`{"input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`:                   "input/0",
		`{"input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]}`:                  "input/0",
		`{"input":[{"role":"user","content":7}]}`:                                                       "input/0",
		`{"input":[{"type":"compaction","encrypted_content":"x"}]}`:                                     "input/0",
		`{"input":[{"type":"function_call","name":"x"}]}`:                                               "input/0",
		`{"input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`:                        "input",
		`{"input":[{"type":"function_call","call_id":"c","name":"x","arguments":"{}"}]}`:                "input",
		`{"input":"x","background":true}`:                                                               "background",
		`{"input":"x","conversation":"conv_1"}`:                                                         "conversation",
		`{"input":"x","prompt":{"id":"p"}}`:                                                             "prompt",
		`{"input":"x","max_tool_calls":3}`:                                                              "max_tool_calls",
		`{"input":"x","temperature":3}`:                                                                 "temperature",
		`{"input":"x","max_output_tokens":0}`:                                                           "max_output_tokens",
		`{"input":"x","include":["message.output_text.logprobs"]}`:                                      "top_logprobs",
		`{"input":"x","tools":[{"type":"function"}]}`:                                                   "tools/0",
		`{"input":"x","tools":[{"name":"x"}]}`:                                                          "tools/0",
		`{"input":"x","tools":[{"type":"function","name":"a"},{"type":"custom","name":"a"}]}`:           "tools",
		`{"input":"x","tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}}`:             "tool_choice",
		`{"input":"x","tool_choice":"maybe"}`:                                                           "tool_choice",
		`{"input":"x","tool_choice":{"type":"function","name":"nothing"}}`:                              "tool_choice",
		`{"input":"x","text":{"format":{"type":"json_schema","name":"x"}}}`:                             "text.format",
		`{"input":"x","text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"}}}}`:  "text.format",
		`{"input":"x","x_tools":["nothing"]}`:                                                           "x_tools",
		`{"input":"x","x_session":"sess_x"}`:                                                            "x_session",
		`{"input":"x","x_session":"sess_x","previous_response_id":"resp_x"}`:                            "previous_response_id",
		`{"input":[{"role":"user","content":"x"},{"type":"item_reference","id":"msg_unknown_0"}]}`:      "input/1",
		`{"model":"none","input":"x"}`:                                                                  "model",
		`{"input":[{"role":"user","content":"x"},{"type":"function_call_output","call_id":"c"}],"a":1}`: "input/1",
	} {
		status, v, _ := s.do(t, "POST", "/v1/responses", body)
		require.Contains(t, []int{400, 404}, status, body)
		require.Equal(t, "invalid_request_error", at(v, "error", "type"), body)
		got, _ := at(v, "error", "param").(string)
		require.Equal(t, strings.TrimPrefix(param, "/"), strings.TrimPrefix(got, "/"), "%s: %v", body, v)
	}
	require.Empty(t, s.asked)
}

func TestAResponseInAForm(t *testing.T) {
	vendor := llm.OpenAI
	s := newScene(t, nil, script(says(`{"a":1}`)))
	s.vendor = &vendor
	s.respond(t, false, `"input":"x","text":{"format":{"type":"json_schema","name":"x","strict":true,"schema":{"type":"object"}}}`)
	require.JSONEq(t, `{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"},"strict":true}}`, string(s.asked[0].Format))
}

func TestAResponseThatIsCutOrFails(t *testing.T) {
	for _, stream := range []bool{false, true} {
		s := newScene(t, nil, script(&llm.Response{Parts: []llm.Part{{Type: llm.TextPart, Text: "And so"}}, StopReason: llm.StopLength, Usage: &llm.Usage{}}))
		v := s.respond(t, stream, `"input":"x"`)
		require.Equal(t, "incomplete", v["status"])
		require.Equal(t, "max_output_tokens", at(v, "incomplete_details", "reason"))
		require.Equal(t, "And so", at(v, "output", 0, "content", 0, "text"))
	}
	broken := func(_ *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
		if on != nil {
			on(llm.Delta{Type: llm.TextPart, Text: "half"})
		}
		return nil, toolerr.New(toolerr.TransportError, "the line was cut")
	}
	s := newScene(t, nil, broken)
	status, text, _ := s.text(t, "POST", "/v1/responses", `{"input":"x","stream":true}`)
	require.Equal(t, 200, status)
	all := eventsOf(t, text)
	failed, last := all[len(all)-2], all[len(all)-1]
	require.Equal(t, "error", failed.event)
	require.Equal(t, "TRANSPORT_ERROR", failed.data["code"])
	require.Equal(t, "response.failed", last.event)
	require.Equal(t, "failed", at(last.data, "response", "status"))
	require.Equal(t, "TRANSPORT_ERROR", at(last.data, "response", "error", "code"))
	for i, e := range all {
		require.EqualValues(t, i, e.data["sequence_number"])
	}
	full := newScene(t, nil, func(*llm.Request, func(llm.Delta)) (*llm.Response, error) {
		return nil, toolerr.New(toolerr.LimitReached, "too long")
	})
	status, v, _ := full.do(t, "POST", "/v1/responses", `{"input":"x","stream":true}`)
	require.Equal(t, 400, status)
	require.Equal(t, "context_length_exceeded", at(v, "error", "code"))
	require.Equal(t, "input", at(v, "error", "param"))
}

// What cannot be stored is answered all the same, and says that it is not stored.
func TestAResponseThatCannotBeStored(t *testing.T) {
	kept := memory.New(memory.Config{})
	s := newScene(t, func(c *httpapi.Config) { c.Responses = &responsestore.Store{Keys: full{kept.Keys}, Blobs: kept.Blobs} }, script(says("a"), says("b")))
	for _, stream := range []bool{false, true} {
		v := s.respond(t, stream, `"input":"x"`)
		require.Equal(t, "completed", v["status"])
		require.Equal(t, false, v["store"])
	}
	s = newScene(t, func(c *httpapi.Config) { c.Responses = nil }, script(says("a")))
	require.Equal(t, false, s.respond(t, false, `"input":"x"`)["store"])
	_, v, _ := s.do(t, "POST", "/v1/responses", `{"input":"x","previous_response_id":"resp_x"}`)
	require.Equal(t, "previous_response_not_found", at(v, "error", "code"))
}

// full are keys of a store that has no room.
type full struct{ store.Keys }

func (full) Put(context.Context, string, []byte, store.Version, time.Time) (store.Version, error) {
	return 0, toolerr.New(toolerr.NoSpace, "the disk is full")
}

// Codex declares the tools of some models in the input.
func TestToolsThatTheInputDeclares(t *testing.T) {
	s := newScene(t, nil, script(calls("", "functions__exec", `{"input":"1 + 1"}`)))
	v := s.respond(t, true, `"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","description":"","tools":[{"type":"custom","name":"exec"}]}]},
		{"role":"user","content":"go"}]`)
	require.Equal(t, "custom_tool_call", at(v, "output", 0, "type"))
	require.Equal(t, "exec", at(v, "output", 0, "name"))
	require.Equal(t, "functions", at(v, "output", 0, "namespace"))
	require.Equal(t, "1 + 1", at(v, "output", 0, "input"))
}

// Parts of an answer that grow at once are items of their own; a refusal is a part of a
// message.
func TestItemsThatGrowAtOnce(t *testing.T) {
	vendor := llm.OpenAI
	args := []string{`{"city":`, `"Bonn"}`}
	s := newScene(t, nil, func(_ *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
		var all llm.ResponseBuilder
		for _, d := range []llm.Delta{
			{Index: 0, Type: llm.TextPart, Text: "Bo"},
			{Index: 1, Type: llm.CallPart, ID: "a", Name: "weather"}, {Index: 2, Type: llm.CallPart, ID: "b", Name: "weather"},
			{Index: 1, Type: llm.CallPart, Args: args[0]}, {Index: 2, Type: llm.CallPart, Args: args[0]},
			{Index: 2, Type: llm.CallPart, Args: args[1]}, {Index: 1, Type: llm.CallPart, Args: args[1]},
			{Index: 0, Type: llm.TextPart, Text: "th."}, {Index: 3, Type: llm.RefusalPart, Text: "Not that."},
		} {
			all.Add(d)
			if on != nil {
				on(d)
			}
		}
		all.FinishCalls()
		all.Response.StopReason, all.Response.Usage = llm.StopCalls, &llm.Usage{}
		return &all.Response, nil
	})
	s.vendor = &vendor
	v := s.respond(t, true, `"input":"go",`+responseTools)
	text := ""
	var calls []any
	for _, item := range v["output"].([]any) {
		switch at(item, "type") {
		case "message":
			said, _ := at(item, "content", 0, "text").(string)
			refused, _ := at(item, "content", 0, "refusal").(string)
			text += said + refused
		case "function_call":
			calls = append(calls, at(item, "arguments"))
		}
	}
	require.Equal(t, "Both.Not that.", text)
	require.Equal(t, []any{`{"city":"Bonn"}`, `{"city":"Bonn"}`}, calls)
}

// A response in a session is kept there and not stored.
func TestAResponseInASession(t *testing.T) {
	s := newScene(t, nil, script(says("one"), says("two")))
	_, v, _ := s.do(t, "POST", "/v1/sessions", `{}`)
	id := v["id"]
	made := s.respond(t, false, fmt.Sprintf(`"input":"q1","instructions":"now","x_session":%q`, id))
	require.Equal(t, false, made["store"])
	s.respond(t, true, fmt.Sprintf(`"input":"q2","x_session":%q`, id))
	require.Equal(t, []string{"user: q1", "assistant: one", "user: q2"}, s.last())
	status, _, _ := s.do(t, "GET", fmt.Sprintf("/v1/responses/%s", made["id"]), "")
	require.Equal(t, 404, status)
}
