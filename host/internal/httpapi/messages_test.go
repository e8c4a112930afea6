package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
)

const theirTools = `"tools":[{"name":"weather","input_schema":{"type":"object"}},{"name":"news","input_schema":{"type":"object"}}]`

// blocks puts the blocks of a stream together, and sees that they come one by one.
func blocks(t *testing.T, stream string) (blocks []map[string]any, stop any) {
	t.Helper()
	open := -1
	all := eventsOf(t, stream)
	require.Equal(t, "message_start", all[0].event)
	require.Equal(t, "message_stop", all[len(all)-1].event)
	for _, e := range all {
		require.Equal(t, e.event, e.data["type"])
		switch e.event {
		case "content_block_start":
			require.Equal(t, -1, open)
			open = int(e.data["index"].(float64))
			require.Len(t, blocks, open)
			blocks = append(blocks, e.data["content_block"].(map[string]any))
		case "content_block_delta":
			require.EqualValues(t, open, e.data["index"])
			delta := e.data["delta"].(map[string]any)
			for member, into := range map[string]string{"text": "text", "thinking": "thinking", "signature": "signature", "partial_json": "json"} {
				if more, ok := delta[member].(string); ok {
					before, _ := blocks[open][into].(string)
					blocks[open][into] = before + more
				}
			}
		case "content_block_stop":
			require.EqualValues(t, open, e.data["index"])
			open = -1
		case "message_delta":
			stop = at(e.data, "delta", "stop_reason")
			require.NotZero(t, at(e.data, "usage", "output_tokens"))
		}
	}
	return blocks, stop
}

func TestMessages(t *testing.T) {
	thought := func() *llm.Response {
		r := calls("Both.", "echo", `{"text":"a"}`, "weather", `{"city":"Bonn"}`, "news", `{}`)
		r.Parts = append([]llm.Part{{Type: llm.ThinkingPart, Text: "hm", Signature: &llm.Signature{Vendor: llm.Anthropic, Value: "sig"}}}, r.Parts...)
		return r
	}
	for _, stream := range []bool{false, true} {
		s := newScene(t, nil, script(thought(), says("Rain.")))
		status, text, _ := s.text(t, "POST", "/v1/messages", fmt.Sprintf(`{"model":"m","max_tokens":100,"system":"be brief","messages":[{"role":"user","content":"go"}],"stream":%v,%s}`, stream, theirTools))
		require.Equal(t, 200, status, text)
		var content []map[string]any
		var stop any
		if stream {
			content, stop = blocks(t, text)
		} else {
			v := parsed(t, text)
			stop = v["stop_reason"]
			for _, b := range v["content"].([]any) {
				content = append(content, b.(map[string]any))
			}
			require.EqualValues(t, 10, at(v, "usage", "input_tokens"))
		}
		require.Equal(t, "tool_use", stop)
		require.Len(t, content, 4)
		require.Equal(t, "hm", content[0]["thinking"])
		require.Equal(t, "sig", content[0]["signature"])
		require.Equal(t, "Both.", content[1]["text"])
		require.Equal(t, "weather", content[2]["name"])
		require.Equal(t, "news", content[3]["name"])
		require.Equal(t, []string{`echo{"text":"a"}`}, s.called)
		one, two := content[2]["id"], content[3]["id"]
		require.Regexp(t, `^toolu_\w{20,}$`, one)

		s.think = script(says("Rain."))
		status, v, _ := s.do(t, "POST", "/v1/messages", fmt.Sprintf(`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"go"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"Both."},{"type":"tool_use","id":%q,"name":"weather","input":{"city":"Bonn"}},{"type":"tool_use","id":%q,"name":"news","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"wet"},{"type":"tool_result","tool_use_id":%q,"content":"none"},{"type":"text","text":"well?"}]}],%s}`, one, two, one, two, theirTools))
		require.Equal(t, 200, status, v)
		require.Equal(t, "end_turn", v["stop_reason"])
		require.Equal(t, []string{"user: go", `assistant: hm Both. echo{"text":"a"} weather{"city":"Bonn"} news{}`, "tool: <echo: a>", "tool: <wet> <none>", "user: well?"}, s.last())
	}
}

func TestMessagesThatAreRefused(t *testing.T) {
	s := newScene(t, nil, script())
	for _, body := range []string{
		`{"messages":[]}`, `{"messages":[{"role":"tool","content":"x"}]}`, `{"messages":[{"role":"user","content":[{"type":"document"}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]}`, `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`,
		`{"messages":[{"role":"user","content":"x"}],"temperature":2}`, `{"messages":[{"role":"user","content":[{"type":"tool_use","id":"x"}]}]}`, `{`,
		`{"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"maybe"}}`,
		`{"messages":[{"role":"user","content":"x"}],"system":7}`,
	} {
		status, v, _ := s.do(t, "POST", "/v1/messages", body)
		require.Equal(t, 400, status, body)
		require.Equal(t, "error", v["type"])
		require.Equal(t, "invalid_request_error", at(v, "error", "type"))
	}
	status, v, _ := s.do(t, "POST", "/v1/messages/count_tokens", `{"messages":[{"role":"user","content":"how many tokens are these?"}]}`)
	require.Equal(t, 200, status)
	require.Greater(t, v["input_tokens"], 20.0)
	require.Empty(t, s.asked)
}
