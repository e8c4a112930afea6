package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const theirTool = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`

func TestAPlainAnswer(t *testing.T) {
	s := newScene(t, nil, script(says("Hello.")))
	status, v, _ := s.do(t, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]}],"temperature":0.5,"max_completion_tokens":7}`)
	require.Equal(t, 200, status)
	require.Equal(t, "chat.completion", v["object"])
	require.Equal(t, "m", v["model"])
	require.Regexp(t, `^chatcmpl-\w+$`, v["id"])
	require.Equal(t, "Hello.", at(v, "choices", 0, "message", "content"))
	require.Equal(t, "assistant", at(v, "choices", 0, "message", "role"))
	require.Equal(t, "stop", at(v, "choices", 0, "finish_reason"))
	require.EqualValues(t, 12, at(v, "usage", "total_tokens"))
	require.NotContains(t, v, "x_ending")
	require.Equal(t, []string{"system: be brief", "user: hi [image/png]"}, s.last())
	require.Equal(t, 7, s.asked[0].MaxTokens)
	require.InDelta(t, 0.5, *s.asked[0].Temperature, 0)
	require.Len(t, s.asked[0].Tools, 3, "the host's tools are offered")
	require.Equal(t, s.turns.Load(), s.ended.Load())
}

func TestTheHostsToolsAreCalledHere(t *testing.T) {
	s := newScene(t, nil, script(calls("Let me see.", "echo", `{"text":"a"}`, "broken", `{}`), says("It says a.")))
	body := `{"model":"m","messages":[{"role":"user","content":"echo a"}],"x_events":true%s}`
	status, v, _ := s.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(body, ""))
	require.Equal(t, 200, status)
	require.Equal(t, "Let me see.\n\nIt says a.", at(v, "choices", 0, "message", "content"))
	require.Nil(t, at(v, "choices", 0, "message", "tool_calls"))
	require.EqualValues(t, 20, at(v, "usage", "prompt_tokens"))
	require.ElementsMatch(t, []string{`echo{"text":"a"}`, `broken{}`}, s.called)
	checkEvents(t, v["x_events"].([]any))

	s.think = script(calls("Let me see.", "echo", `{"text":"a"}`, "broken", `{}`), says("It says a."))
	_, text, header := s.text(t, "POST", "/v1/chat/completions", fmt.Sprintf(body, `,"stream":true,"stream_options":{"include_usage":true}`))
	require.Contains(t, header.Get("Content-Type"), "text/event-stream")
	content, reason, told := "", "", []any{}
	all := eventsOf(t, text)
	for _, e := range all {
		if e.text == "[DONE]" {
			continue
		}
		require.Empty(t, e.event)
		require.Equal(t, "chat.completion.chunk", e.data["object"])
		if delta, ok := at(e.data, "choices", 0, "delta", "content").(string); ok {
			content += delta
		}
		if r, ok := at(e.data, "choices", 0, "finish_reason").(string); ok {
			reason = r
		}
		if x := e.data["x_event"]; x != nil {
			told = append(told, x)
		}
	}
	require.Equal(t, "Let me see.\n\nIt says a.", content)
	require.Equal(t, "stop", reason)
	require.Equal(t, "[DONE]", all[len(all)-1].text)
	require.EqualValues(t, 7, at(all[len(all)-2].data, "usage", "completion_tokens"))
	require.Equal(t, "assistant", at(all[0].data, "choices", 0, "delta", "role"))
	checkEvents(t, told)
}

// checkEvents sees that both calls are told, each event with an id of its own.
func checkEvents(t *testing.T, events []any) {
	t.Helper()
	ids, calls, answers := map[any]bool{}, map[any]string{}, 0
	for _, e := range events {
		id := at(e, "id")
		require.NotEmpty(t, id)
		require.False(t, ids[id], "two events with one id")
		ids[id] = true
		name := fmt.Sprint(at(e, "name"))
		switch at(e, "type") {
		case "tool.call":
			calls[at(e, "call_id")] = name
		case "tool.response":
			answers++
			require.Equal(t, calls[at(e, "call_id")], name)
			require.Equal(t, name == "broken", at(e, "is_error"))
		}
	}
	require.Len(t, calls, 2)
	require.Equal(t, 2, answers)
}

// A turn that calls a tool of each side: ours is called, theirs is returned, and the
// next request, which knows nothing of ours, has the model see all of it.
func TestAnAnswerWithCallsOfBothSides(t *testing.T) {
	for _, stream := range []string{"", `,"stream":true`} {
		s := newScene(t, nil, script(calls("", "echo", `{"text":"first"}`), calls("Both.", "echo", `{"text":"a"}`, "weather", `{"city":"Bonn"}`), says("Rain.")))
		status, text, _ := s.text(t, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"go"}],`+theirTool+stream+`}`)
		require.Equal(t, 200, status, text)
		var id, args string
		if stream == "" {
			v := parsed(t, text)
			require.Equal(t, "tool_calls", at(v, "choices", 0, "finish_reason"))
			require.Nil(t, at(v, "choices", 0, "message", "tool_calls", 1), "only theirs is returned")
			id = at(v, "choices", 0, "message", "tool_calls", 0, "id").(string)
			args = at(v, "choices", 0, "message", "tool_calls", 0, "function", "arguments").(string)
		} else {
			for _, e := range eventsOf(t, text) {
				if one := at(e.data, "choices", 0, "delta", "tool_calls", 0); one != nil {
					require.EqualValues(t, 0, at(one, "index"))
					if given, ok := at(one, "id").(string); ok {
						id = given
					}
					args += at(one, "function", "arguments").(string)
				}
			}
		}
		require.JSONEq(t, `{"city":"Bonn"}`, args)
		require.Regexp(t, `^call_\w{20,}$`, id)
		require.Equal(t, []string{`echo{"text":"first"}`, `echo{"text":"a"}`}, s.called)

		follow := `{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":%q,"tool_calls":[{"id":%q,"type":"function","function":{"name":"weather","arguments":"{ \"city\": \"Bonn\"}"}}]},{"role":"tool","tool_call_id":%q,"content":"wet"}],` + theirTool + `}`
		s.think = script(says("Rain."), says("Rain."), says("Rain."))
		status, v, _ := s.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(follow, "Both.", id, id))
		require.Equal(t, 200, status)
		require.Equal(t, "Rain.", at(v, "choices", 0, "message", "content"))
		require.Equal(t, []string{"user: go", `assistant: echo{"text":"first"}`, "tool: <echo: first>",
			`assistant: Both. echo{"text":"a"} weather{"city":"Bonn"}`, "tool: <echo: a>", "tool: <wet>"}, s.last())

		// One that the client has changed counts as it is.
		_, _, _ = s.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(follow, "Another.", id, id))
		require.Equal(t, []string{"user: go", `assistant: Another. weather{ "city": "Bonn"}`, "tool: <wet>"}, s.last())
	}
}

// What is kept of an answer may be long.
func TestALongAnswerWithCallsOfBothSides(t *testing.T) {
	long := strings.Repeat("long ", 150_000)
	s := newScene(t, nil, script(calls("", "echo", `{"text":"`+long+`"}`, "weather", `{}`), says("Rain.")))
	_, v, _ := s.do(t, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}],`+theirTool+`}`)
	id := at(v, "choices", 0, "message", "tool_calls", 0, "id").(string)
	s.think = script(says("Rain."))
	status, _, _ := s.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":%q,"content":"wet"}],%s}`, id, id, theirTool))
	require.Equal(t, 200, status)
	require.Equal(t, []string{"tool: <echo: " + long + ">", "tool: <wet>"}, s.last()[2:])
}

// Calls that a model does not tell in pieces are told all the same.
func TestCallsThatComeInNoPiece(t *testing.T) {
	silent := func(*llm.Request, func(llm.Delta)) (*llm.Response, error) {
		return calls("Here.", "weather", `{"city":"Bonn"}`, "weather", `{"city":"Ulm"}`), nil
	}
	half := func(_ *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
		r := calls("Here.", "weather", `{"city":"Bonn"}`, "weather", `{"city":"Ulm"}`)
		on(r.Deltas()[0])
		on(r.Deltas()[1])
		return r, nil
	}
	for _, think := range []func(*llm.Request, func(llm.Delta)) (*llm.Response, error){silent, half} {
		s := newScene(t, nil, think)
		_, text, _ := s.text(t, "POST", "/v1/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"go"}],`+theirTool+`}`)
		args := map[any]string{}
		for _, e := range eventsOf(t, text) {
			if one := at(e.data, "choices", 0, "delta", "tool_calls", 0); one != nil {
				args[at(one, "index")] += at(one, "function", "arguments").(string)
			}
		}
		require.Equal(t, map[any]string{0.0: `{"city":"Bonn"}`, 1.0: `{"city":"Ulm"}`}, args)
		_, text, _ = s.text(t, "POST", "/v1/messages", `{"stream":true,"messages":[{"role":"user","content":"go"}],"tools":[{"name":"weather"}]}`)
		content, _ := blocks(t, text)
		require.Len(t, content, 3)
		require.JSONEq(t, `{"city":"Ulm"}`, content[2]["json"].(string))
	}
}

func TestOldFunctions(t *testing.T) {
	s := newScene(t, nil, script(calls("", "weather", `{"city":"Bonn"}`), calls("", "weather", `{"city":"Bonn"}`), says("Rain.")))
	body := `{"model":"m","messages":[{"role":"user","content":"go"}],"functions":[{"name":"weather","parameters":{"type":"object"}}],"function_call":"auto"%s}`
	_, v, _ := s.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(body, ""))
	require.Equal(t, "function_call", at(v, "choices", 0, "finish_reason"))
	require.Equal(t, "weather", at(v, "choices", 0, "message", "function_call", "name"))
	require.JSONEq(t, `{"city":"Bonn"}`, at(v, "choices", 0, "message", "function_call", "arguments").(string))
	_, text, _ := s.text(t, "POST", "/v1/chat/completions", fmt.Sprintf(body, `,"stream":true`))
	args := ""
	for _, e := range eventsOf(t, text) {
		if more, ok := at(e.data, "choices", 0, "delta", "function_call", "arguments").(string); ok {
			args += more
		}
	}
	require.JSONEq(t, `{"city":"Bonn"}`, args)
	_, v, _ = s.do(t, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"function_call":{"name":"weather","arguments":"{}"}},{"role":"function","name":"weather","content":"wet"}],"functions":[{"name":"weather"}]}`)
	require.Equal(t, "Rain.", at(v, "choices", 0, "message", "content"))
	require.Equal(t, []string{"user: go", "assistant: weather{}", "tool: <wet>"}, s.last())
}

func TestToolsAreChosen(t *testing.T) {
	for body, want := range map[string][]string{
		`"model":"m|echo"`:                   {"echo"},
		`"model":"p/m|*echo|broken"`:         {"echo", "broken", "other__echo"},
		`"model":"m","x_tools":["other__*"]`: {"other__echo"},
		`"model":"m","x_tools":[]`:           nil,
		`"model":"m|"`:                       nil,
		`"model":"m","tool_choice":"none"`:   {"echo", "broken", "other__echo"},
		`"x_tools":["echo"],"tool_choice":{"type":"function","function":{"name":"echo"}}`: {"echo"},
	} {
		s := newScene(t, nil, script(calls("", "broken", `{}`), says("done")))
		status, v, _ := s.do(t, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}],`+body+`}`)
		require.Equal(t, 200, status, "%s: %v", body, v)
		var names []string
		for _, tool := range s.asked[0].Tools {
			names = append(names, tool.Name)
		}
		require.Equal(t, want, names, body)
		if !strings.Contains(strings.Join(want, " "), "broken") {
			require.Empty(t, s.called, "%s: what is not offered is not called", body)
		}
	}
	s := newScene(t, nil, script())
	for body, param := range map[string]string{
		`"model":"m|nothing"`: "x_tools", `"model":"m|echo","x_tools":["echo"]`: "x_tools", `"x_tools":"echo"`: "x_tools", `"x_tools":[1]`: "x_tools",
		`"model":"m|echo","tool_choice":{"type":"function","function":{"name":"broken"}}`: "tool_choice",
	} {
		status, v, _ := s.do(t, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}],`+body+`}`)
		require.Equal(t, 400, status, body)
		require.Equal(t, param, at(v, "error", "param"), body)
	}
}

func TestWhatIsRefused(t *testing.T) {
	s := newScene(t, nil, script())
	one := `"messages":[{"role":"user","content":"go"}]`
	call := `{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"a","arguments":"{}"}}]}`
	for _, c := range []struct {
		body, param string
		status      int
	}{
		{`{"model":"none",` + one + `}`, "model", 404},
		{`{"model":1,` + one + `}`, "model", 400},
		{`{"n":2,` + one + `}`, "n", 400},
		{`{"response_format":{"type":"json_object"},` + one + `}`, "response_format", 400},
		{`{"logprobs":true,` + one + `}`, "logprobs", 400},
		{`{"modalities":["audio"],` + one + `}`, "modalities", 400},
		{`{"temperature":"hot",` + one + `}`, "temperature", 400},
		{`{"temperature":3,` + one + `}`, "temperature", 400},
		{`{"max_tokens":0,` + one + `}`, "max_tokens", 400},
		{`{"max_tokens":1.5,` + one + `}`, "max_tokens", 400},
		{`{"stream":"yes",` + one + `}`, "stream", 400},
		{`{"tools":{},` + one + `}`, "tools", 400},
		{`{"tools":[{"type":"web_search"}],` + one + `}`, "tools/0", 400},
		{`{"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}],` + one + `}`, "tools", 400},
		{`{"tool_choice":"maybe",` + one + `}`, "tool_choice", 400},
		{`{"stop":7,` + one + `}`, "stop", 400},
		{`{"stop":["a",7],` + one + `}`, "stop", 400},
		{`{}`, "messages", 400},
		{`{"messages":[]}`, "messages", 400},
		{`{"messages":"go"}`, "messages", 400},
		{`{"messages":[{"role":"robot","content":"x"}]}`, "messages/0", 400},
		{`{"messages":[{"role":"user"}]}`, "messages/0", 400},
		{`{"messages":[{"role":"user","content":7}]}`, "messages/0", 400},
		{`{"messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, "messages/0", 400},
		{`{"messages":[{"role":"user","content":[{"type":7}]}]}`, "messages/0", 400},
		{`{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages/0", 400},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"x"}]}]}`, "messages/0", 400},
		{`{"messages":[{"role":"tool","content":"x"}]}`, "messages/0", 400},
		{`{"messages":[{"role":"tool","tool_call_id":"y","content":"x"}]}`, "messages", 400},
		{`{"messages":[` + call + `]}`, "messages", 400},
		{`{"messages":[` + call + `,{"role":"user","content":"and?"}]}`, "messages", 400},
		{`{"x_session":"sess_none",` + one + `}`, "x_session", 404},
		{`{"x_events":1,` + one + `}`, "x_events", 400},
		{`[]`, "", 400},
		{`{"messages":`, "", 400},
		{`{"n":1,"n":1,` + one + `}`, "", 400},
		{strings.Repeat(`{"a":`, 20000), "", 400},
	} {
		status, v, _ := s.do(t, "POST", "/v1/chat/completions", c.body)
		require.Equal(t, c.status, status, "%.200s: %v", c.body, v)
		require.NotEmpty(t, at(v, "error", "message"))
		require.Equal(t, "invalid_request_error", at(v, "error", "type"))
		if c.param != "" {
			require.Equal(t, c.param, at(v, "error", "param"), c.body)
		}
		require.Contains(t, v["error"], "code")
	}
	require.Empty(t, s.asked)
	status, _, _ := s.do(t, "POST", "/v1/chat/completions", `{`+one+`}`, "Content-Type", "text/plain")
	require.Equal(t, 415, status)
	status, _, header := s.do(t, "GET", "/v1/chat/completions", "")
	require.Equal(t, 405, status)
	require.Equal(t, "POST", header.Get("Allow"))
	status, v, _ := s.do(t, "GET", "/v1/nothing", "")
	require.Equal(t, 404, status)
	require.Equal(t, "NOT_FOUND", at(v, "error", "code"))
	status, v, _ = s.do(t, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"`+strings.Repeat("x", 17<<20)+`"}]}`)
	require.Equal(t, 413, status, v)
}

func TestHintsThatAreNotFollowedAreNamed(t *testing.T) {
	s := newScene(t, nil, script(says("ok")))
	status, _, header := s.do(t, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}],"seed":7,"top_k":3,"logit_bias":{},"n":1,"response_format":{"type":"text"},"user":"u","presence_penalty":null}`)
	require.Equal(t, 200, status)
	for _, name := range []string{"seed", "top_k"} {
		require.Contains(t, header.Get("X-Toolroom-Ignored"), name)
	}
	require.NotContains(t, header.Get("X-Toolroom-Ignored"), "presence_penalty")
}

func TestErrorsOfTheModel(t *testing.T) {
	for code, want := range map[toolerr.Code]struct {
		status int
		code   string
	}{
		toolerr.RateLimited:    {429, "rate_limit_exceeded"},
		toolerr.AuthFailed:     {500, "AUTH_FAILED"},
		toolerr.InvalidInput:   {400, "INVALID_INPUT"},
		toolerr.TransportError: {503, "TRANSPORT_ERROR"},
		toolerr.ModelError:     {500, "MODEL_ERROR"},
		toolerr.Timeout:        {504, "TIMEOUT"},
		toolerr.LimitReached:   {400, "context_length_exceeded"},
	} {
		s := newScene(t, nil, func(*llm.Request, func(llm.Delta)) (*llm.Response, error) {
			return nil, toolerr.New(code, "it went wrong")
		})
		for _, stream := range []string{"", `,"stream":true`} { // before the first piece, streams have a status, too
			status, v, _ := s.do(t, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}]`+stream+`}`)
			require.Equal(t, want.status, status, code)
			require.Equal(t, want.code, at(v, "error", "code"), code)
		}
		status, v, _ := s.do(t, "POST", "/v1/messages", `{"max_tokens":9,"messages":[{"role":"user","content":"go"}]}`)
		require.Equal(t, want.status, status, code)
		require.Equal(t, "error", v["type"])
	}
	s := newScene(t, nil, func(_ *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
		on(llm.Delta{Type: llm.TextPart, Text: "Half of"})
		return nil, toolerr.New(toolerr.TransportError, "the line was cut")
	})
	status, text, _ := s.text(t, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}],"stream":true}`)
	require.Equal(t, 200, status)
	all := eventsOf(t, text)
	require.Contains(t, at(all[len(all)-1].data, "error", "message"), "the line was cut")
	require.NotContains(t, text, "[DONE]")
	_, text, _ = s.text(t, "POST", "/v1/messages", `{"max_tokens":9,"messages":[{"role":"user","content":"go"}],"stream":true}`)
	all = eventsOf(t, text)
	require.Equal(t, "error", all[len(all)-1].event)
	require.NotContains(t, text, "message_stop")
}

// A client that goes away ends what is done for it.
func TestAClientThatGoesAwayEndsTheRun(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"go"}],"stream":true}`,
		"/v1/responses":        `{"input":"go","stream":true}`,
	} {
		began, ended := make(chan struct{}), make(chan struct{})
		s := newScene(t, nil, nil)
		s.until = func(ctx context.Context) {
			close(began)
			<-ctx.Done()
			close(ended)
		}
		s.think = script()
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", s.url+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		go func() {
			<-began
			cancel()
		}()
		_, err = http.DefaultClient.Do(req) //nolint:bodyclose // there is no answer
		require.ErrorIs(t, err, context.Canceled)
		<-ended
	}
}
