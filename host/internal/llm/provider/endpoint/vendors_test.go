package endpoint_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/anthropic"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/gemini"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/openai"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
)

// key is what must be in no error's text.
const key = "vendor-key-1234567890"

// vendor is one, with answers as it writes them, recorded from its documentation and
// cut to what matters.
type vendor struct {
	name   string
	open   func(url string, change ...func(*endpoint.Config)) provider.Model
	path   string // of a stream
	auth   string // header: value
	answer []exchange

	refused    string // the body of a 400
	overloaded string // the body of an overload, and the status
	status     int
	fault      string // an error within a stream
}

type exchange struct {
	name   string
	whole  string
	events []string // of the same answer
	want   llm.Response
}

func config(url string, change []func(*endpoint.Config)) endpoint.Config {
	c := endpoint.Config{Name: "test", BaseURL: url, Key: key, KeyEnv: "THE_KEY", MaxSilence: 20 * time.Second, Retry: retry.Policy{Base: time.Millisecond}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func vendors() []vendor { return []vendor{openAI(), claude(), google()} }

func openAI() vendor {
	chunk := func(delta, more string) string {
		return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[{"index":0,"delta":` + delta + more + "}]}\n\n"
	}
	whole := func(message, word string) string {
		return `{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant",` + message + `},"finish_reason":"` + word +
			`"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}`
	}
	usage := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}` + "\n\n"
	base := func(stop llm.StopReason, word string, parts ...llm.Part) llm.Response {
		return llm.Response{ID: "chatcmpl-1", Model: "m-1", Created: 7, Parts: parts, StopReason: stop, VendorStop: word, Vendor: llm.OpenAI, Usage: &llm.Usage{Input: 9, Output: 4, CacheRead: 2, Reasoning: 1}}
	}
	const done = "data: [DONE]\n\n"
	v := vendor{
		name: "openai", path: "/chat/completions", auth: "Authorization: Bearer " + key,
		open: func(url string, change ...func(*endpoint.Config)) provider.Model {
			return openai.New(openai.Config{Config: config(url, change), Model: "m-1"})
		},
		refused:    `{"error":{"message":"Unknown parameter: 'x'. Key ` + key + ` is yours.","type":"invalid_request_error","param":"x","code":null}}`,
		overloaded: `{"error":{"message":"The server is overloaded","type":"server_error"}}`, status: 503,
		fault: `data: {"error":{"message":"The server had an error ` + key + `","type":"server_error","code":null}}` + "\n\n",
	}
	v.answer = []exchange{
		{"text", whole(`"content":"Hello there","refusal":null`, "stop"), []string{
			": comment\r\n\r\n", chunk(`{"role":"assistant","content":"","refusal":null}`, `,"logprobs":null,"finish_reason":null`), chunk(`{"content":"Hello"}`, `,"finish_reason":null`),
			strings.ReplaceAll(chunk(`{"content":" there"}`, ""), "\n", "\r\n"), chunk(`{}`, `,"finish_reason":"stop"`), usage, done,
		}, base(llm.StopEnd, "stop", text("Hello there"))},
		{"calls", whole(`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"grep","arguments":"{\"pattern\":\"ü\\\"\"}"}},{"id":"c2","type":"function","function":{"name":"ls","arguments":""}}]`, "tool_calls"),
			slicesOf(
				chunk(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"grep","arguments":""}}]}`, ""),
				chunk(`{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"ls","arguments":""}}]}`, ""),
				fragments(`{"pattern":"ü\""}`, func(f string) string {
					return chunk(`{"tool_calls":[{"index":0,"function":{"arguments":`+quoted(f)+`}}]}`, "")
				}), chunk(`{}`, `,"finish_reason":"tool_calls"`), usage, done),
			base(llm.StopCalls, "tool_calls", called("c1", "grep", `{"pattern":"ü\""}`), called("c2", "ls", `{}`))},
		{"reasoning and a refusal", whole(`"content":"I","refusal":"no","reasoning_content":"hm hm"`, "content_filter"), []string{
			chunk(`{"role":"assistant","reasoning_content":"hm "}`, ""), chunk(`{"reasoning_content":"hm"}`, ""), chunk(`{"content":"I"}`, ""), chunk(`{"refusal":"no"}`, ""),
			chunk(`{}`, `,"finish_reason":"content_filter"`), usage, done,
		}, base(llm.StopRefusal, "content_filter", llm.Part{Type: llm.ThinkingPart, Text: "hm hm"}, text("I"), llm.Part{Type: llm.RefusalPart, Text: "no"})},
		{"cut by its bound", whole(`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"grep","arguments":"{\"pa"}}]`, "length"), []string{
			chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"grep","arguments":"{\"pa"}}]}`, ""), chunk(`{}`, `,"finish_reason":"length"`), usage, done,
		}, base(llm.StopLength, "length", llm.Part{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: "c1", Name: "grep", Malformed: `{"pa`}})},
	}
	return v
}

func claude() vendor {
	event := func(kind, rest string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + rest + "}\n\n"
	}
	start := func(i int, block string) string {
		return event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, i, block))
	}
	delta := func(i int, d string) string {
		return event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, i, d))
	}
	stop := func(i int) string { return event("content_block_stop", fmt.Sprintf(`,"index":%d`, i)) }
	begin := event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"cache_read_input_tokens":3,"cache_creation_input_tokens":1,"output_tokens":1}}`)
	end := func(word, sequence string) []string {
		return []string{event("message_delta", `,"delta":{"stop_reason":"`+word+`","stop_sequence":`+sequence+`},"usage":{"output_tokens":11}`), event("message_stop", "")}
	}
	whole := func(content, word, sequence string) string {
		return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-1","content":[` + content + `],"stop_reason":"` + word + `","stop_sequence":` + sequence +
			`,"usage":{"input_tokens":5,"cache_read_input_tokens":3,"cache_creation_input_tokens":1,"output_tokens":11}}`
	}
	base := func(stop llm.StopReason, word string, parts ...llm.Part) llm.Response {
		return llm.Response{ID: "msg_1", Model: "claude-1", Parts: parts, StopReason: stop, VendorStop: word, Vendor: llm.Anthropic, Usage: &llm.Usage{Input: 9, Output: 11, CacheRead: 3, CacheWrite: 1}}
	}
	ping := event("ping", "")
	v := vendor{
		name: "anthropic", path: "/v1/messages", auth: "X-Api-Key: " + key,
		open: func(url string, change ...func(*endpoint.Config)) provider.Model {
			return anthropic.New(anthropic.Config{Config: config(url, change), Model: "claude-1"})
		},
		refused:    `{"type":"error","error":{"type":"invalid_request_error","message":"messages: at least one message is required ` + key + `"},"request_id":"req_1"}`,
		overloaded: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, status: 529,
		fault: event("error", `,"error":{"type":"overloaded_error","message":"Overloaded `+key+`"}`),
	}
	matched := base(llm.StopSequence, "stop_sequence", text("Hello"))
	matched.MatchedStop = "END"
	signed := func(s string) *llm.Signature { return &llm.Signature{Vendor: llm.Anthropic, Value: s} }
	v.answer = []exchange{
		{"text", whole(`{"type":"text","text":"Hello"}`, "stop_sequence", `"END"`),
			slicesOf(begin, start(0, `{"type":"text","text":""}`), ping, delta(0, `{"type":"text_delta","text":"Hel"}`), delta(0, `{"type":"text_delta","text":"lo"}`), stop(0), end("stop_sequence", `"END"`)), matched},
		{"thinking and calls", whole(`{"type":"thinking","thinking":"hm hm","signature":"sig"},{"type":"redacted_thinking","data":"xx"},{"type":"text","text":"so"},{"type":"tool_use","id":"t1","name":"grep","input":{"pattern":"ü"}},{"type":"tool_use","id":"t2","name":"ls","input":{}}`, "tool_use", "null"),
			slicesOf(begin, start(0, `{"type":"thinking","thinking":"","signature":""}`), delta(0, `{"type":"thinking_delta","thinking":"hm "}`), delta(0, `{"type":"thinking_delta","thinking":"hm"}`), delta(0, `{"type":"signature_delta","signature":"sig"}`), stop(0),
				start(1, `{"type":"redacted_thinking","data":"xx"}`), stop(1), start(2, `{"type":"text","text":""}`), delta(2, `{"type":"text_delta","text":"so"}`), stop(2),
				start(3, `{"type":"tool_use","id":"t1","name":"grep","input":{}}`), fragments(`{"pattern":"ü"}`, func(f string) string {
					return delta(3, `{"type":"input_json_delta","partial_json":`+quoted(f)+`}`)
				}), stop(3), start(4, `{"type":"tool_use","id":"t2","name":"ls","input":{}}`), delta(4, `{"type":"input_json_delta","partial_json":""}`), stop(4), end("tool_use", "null")),
			base(llm.StopCalls, "tool_use", llm.Part{Type: llm.ThinkingPart, Text: "hm hm", Signature: signed("sig")}, llm.Part{Type: llm.RedactedPart, Signature: signed("xx")},
				text("so"), called("t1", "grep", `{"pattern":"ü"}`), called("t2", "ls", `{}`))},
		{"its own tools, and a pause", whole(`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"a"}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`, "pause_turn", "null"),
			slicesOf(begin, start(0, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`), delta(0, `{"type":"input_json_delta","partial_json":"{\"query\":"}`), delta(0, `{"type":"input_json_delta","partial_json":"\"a\"}"}`), stop(0),
				start(1, `{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`), stop(1), end("pause_turn", "null")),
			base(llm.StopPause, "pause_turn", llm.Part{Type: llm.OpaquePart, Vendor: llm.Anthropic, Raw: json.RawMessage(`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"a"}}`)},
				llm.Part{Type: llm.OpaquePart, Vendor: llm.Anthropic, Raw: json.RawMessage(`{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`)})},
		{"a refusal", whole(`{"type":"text","text":"I can"}`, "refusal", "null"), slicesOf(begin, start(0, `{"type":"text","text":"I can"}`), stop(0), end("refusal", "null")), base(llm.StopRefusal, "refusal", text("I can"))},
		{"a full context", whole(`{"type":"text","text":"a"}`, "model_context_window_exceeded", "null"), slicesOf(begin, start(0, `{"type":"text","text":"a"}`), stop(0), end("model_context_window_exceeded", "null")),
			base(llm.StopContext, "model_context_window_exceeded", text("a"))},
	}
	return v
}

func google() vendor {
	piece := func(parts, more string) string {
		return `data: {"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"index":0` + more + `}],"usageMetadata":{"promptTokenCount":6,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":11},"modelVersion":"gemini-1","responseId":"r1"}` + "\r\n\r\n"
	}
	whole := func(parts, word string) string {
		return strings.TrimSuffix(strings.TrimPrefix(piece(parts, `,"finishReason":"`+word+`"`), "data: "), "\r\n\r\n")
	}
	base := func(stop llm.StopReason, word string, parts ...llm.Part) llm.Response {
		return llm.Response{ID: "r1", Model: "gemini-1", Parts: parts, StopReason: stop, VendorStop: word, Vendor: llm.Gemini, Usage: &llm.Usage{Input: 6, Output: 5, Reasoning: 3}}
	}
	end := func(word string) string { return `,"finishReason":"` + word + `"` }
	v := vendor{
		name: "gemini", path: "/models/gemini-1:streamGenerateContent", auth: "X-Goog-Api-Key: " + key,
		open: func(url string, change ...func(*endpoint.Config)) provider.Model {
			return gemini.New(gemini.Config{Config: config(url, change), Model: "gemini-1"})
		},
		refused:    `{"error":{"code":400,"message":"Invalid JSON payload ` + key + `","status":"INVALID_ARGUMENT"}}`,
		overloaded: `[{"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}]`, status: 503,
		fault: `data: {"error":{"code":503,"message":"overloaded ` + key + `","status":"UNAVAILABLE"}}` + "\r\n\r\n",
	}
	sign := func(p llm.Part, s string) llm.Part {
		p.Signature = &llm.Signature{Vendor: llm.Gemini, Value: s}
		return p
	}
	v.answer = []exchange{
		{"text", whole(`{"text":"hm hm","thought":true},{"text":"Hello there"}`, "STOP"), []string{
			piece(`{"text":"hm ","thought":true}`, ""), piece(`{"text":"hm","thought":true}`, ""), piece(`{"text":"Hello"}`, ""), piece(`{"text":" there"}`, end("STOP")),
		}, base(llm.StopEnd, "STOP", llm.Part{Type: llm.ThinkingPart, Text: "hm hm"}, text("Hello there"))},
		{"calls", whole(`{"functionCall":{"name":"grep","args":{"pattern":"ü"}},"thoughtSignature":"sig"},{"functionCall":{"name":"ls","args":{}}},{"functionCall":{"id":"own","name":"ls"}}`, "STOP"), []string{
			piece(`{"functionCall":{"name":"grep","args":{"pattern":"ü"}},"thoughtSignature":"sig"}`, ""), piece(`{"functionCall":{"name":"ls","args":{}}}`, ""), piece(`{"functionCall":{"id":"own","name":"ls"}}`, ""), piece(``, end("STOP")),
		}, base(llm.StopCalls, "STOP", sign(called("gemini_call_1_0", "grep", `{"pattern":"ü"}`), "sig"), called("gemini_call_1_1", "ls", `{}`), called("own", "ls", `{}`))},
		{"signed text", whole(`{"text":"a"},{"text":"","thoughtSignature":"end"}`, "MAX_TOKENS"), []string{piece(`{"text":"a"}`, ""), piece(`{"text":"","thoughtSignature":"end"}`, end("MAX_TOKENS"))},
			base(llm.StopLength, "MAX_TOKENS", text("a"), sign(text(""), "end"))},
		{"a filter", whole(`{"text":"a"}`, "SAFETY"), []string{piece(`{"text":"a"}`, end("SAFETY"))}, base(llm.StopRefusal, "SAFETY", text("a"))},
		{"a refused question", `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"modelVersion":"gemini-1","responseId":"r1"}`,
			[]string{`data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"modelVersion":"gemini-1","responseId":"r1"}` + "\r\n\r\n"},
			llm.Response{ID: "r1", Model: "gemini-1", StopReason: llm.StopRefusal, VendorStop: "PROHIBITED_CONTENT", Vendor: llm.Gemini}},
		{"no call that can be read", whole(``, "MALFORMED_FUNCTION_CALL"), []string{piece(``, end("MALFORMED_FUNCTION_CALL"))}, base(llm.StopFault, "MALFORMED_FUNCTION_CALL")},
	}
	return v
}

func text(s string) llm.Part { return llm.Part{Type: llm.TextPart, Text: s} }

func called(id, name, args string) llm.Part {
	return llm.Part{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}}
}

func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// fragments are events of a text, cut at every character.
func fragments(text string, event func(string) string) (all []string) {
	for _, r := range text {
		all = append(all, event(string(r)))
	}
	return all
}

// slicesOf makes one list of texts and lists.
func slicesOf(items ...any) (all []string) {
	for _, item := range items {
		switch v := item.(type) {
		case string:
			all = append(all, v)
		case []string:
			all = append(all, v...)
		}
	}
	return all
}

// stream writes events. What is not written to its end is cut.
func stream(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, e := range events {
		w.Write([]byte(e)) //nolint:errcheck // the client may be gone
		w.(http.Flusher).Flush()
	}
}
