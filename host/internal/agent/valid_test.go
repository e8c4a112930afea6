package agent_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/anthropic"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/gemini"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/openai"
)

// valid holds a conversation to what the vendors ask of one: what they refuse a
// request for.
func valid(t *testing.T, messages []llm.Message) {
	t.Helper()
	r := &llm.Request{Model: "m", MaxTokens: 10, Messages: messages, Tools: []llm.Tool{{Name: "ls", Input: json.RawMessage(`{"type":"object"}`)}}}

	body, _ := openai.EncodeRequest(r, openai.Options{})
	validOpenAI(t, body.JSON())
	back, _, err := openai.DecodeRequest(body.JSON(), openai.Options{})
	require.NoError(t, err)
	sameCalls(t, messages, back.Messages)

	body, _ = anthropic.EncodeRequest(r, anthropic.Options{})
	validAnthropic(t, body.JSON())
	back, _, err = anthropic.DecodeRequest(body.JSON(), anthropic.Options{})
	require.NoError(t, err)
	sameCalls(t, messages, back.Messages)

	body, _ = gemini.EncodeRequest(r, gemini.Options{})
	validGemini(t, body.JSON())
	back, _, err = gemini.DecodeRequest(body.JSON(), gemini.Options{})
	require.NoError(t, err)
	sameCalls(t, messages, back.Messages)
}

// sameCalls says that calls and results are there, in order, after a vendor has had
// the conversation.
func sameCalls(t *testing.T, want, got []llm.Message) {
	t.Helper()
	list := func(messages []llm.Message) (calls, results int) {
		for _, m := range messages {
			for _, p := range m.Parts {
				if p.ToolCall != nil {
					calls++
				}
				if p.ToolResult != nil {
					results++
				}
			}
		}
		return calls, results
	}
	wantCalls, wantResults := list(want)
	calls, results := list(got)
	require.Equal(t, wantCalls, calls)
	require.Equal(t, wantResults, results)
}

// validOpenAI: each tool message answers a call of the assistant's message before it
// that has no answer yet, and all are answered before anybody else speaks.
func validOpenAI(t *testing.T, body []byte) {
	t.Helper()
	var r struct {
		Messages []struct {
			Role    string
			Content any
			Calls   []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
			CallID string `json:"tool_call_id"`
		}
	}
	require.NoError(t, json.Unmarshal(body, &r))
	require.NotEmpty(t, r.Messages)
	var open []string
	seen := map[string]bool{}
	for _, m := range r.Messages {
		if m.Role == "tool" {
			i := slices.Index(open, m.CallID)
			require.Zero(t, i, "results come in the order of calls")
			open = open[1:]
			continue
		}
		require.Empty(t, open, "all calls are answered")
		if m.Role == "assistant" {
			require.True(t, m.Content != nil || len(m.Calls) > 0)
		} else {
			require.NotNil(t, m.Content)
		}
		for _, c := range m.Calls {
			require.Regexp(t, `^[a-zA-Z0-9_-]{1,40}$`, c.ID)
			require.Regexp(t, `^[a-zA-Z0-9_-]{1,64}$`, c.Function.Name)
			require.False(t, seen[c.ID], "ids are unique")
			seen[c.ID] = true
			open = append(open, c.ID)
		}
	}
	require.Empty(t, open)
}

// validAnthropic: roles alternate, the user is first, results stand at the beginning of
// the very next turn, one for each call, no text is blank, thinking is never last.
func validAnthropic(t *testing.T, body []byte) {
	t.Helper()
	type block struct {
		Type, Text, ID string
		Name           string
		Input          json.RawMessage
		For            string `json:"tool_use_id"`
	}
	var r struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(body, &r))
	role := "assistant"
	var open []string
	seen := map[string]bool{}
	for _, m := range r.Messages {
		require.NotEqual(t, role, m.Role, "roles alternate")
		role = m.Role
		var blocks []block
		if json.Unmarshal(m.Content, &blocks) != nil {
			var text string
			require.NoError(t, json.Unmarshal(m.Content, &text))
			blocks = []block{{Type: "text", Text: text}}
		}
		require.NotEmpty(t, blocks)
		answered := 0
		for i, b := range blocks {
			switch b.Type {
			case "tool_result":
				require.Equal(t, i, answered, "results come first")
				require.Contains(t, open, b.For)
				answered++
			case "text":
				require.Regexp(t, `\S`, b.Text)
			}
		}
		require.Equal(t, len(open), answered, "as many results as calls")
		open = nil
		for _, b := range blocks {
			if b.Type == "tool_use" {
				require.Regexp(t, `^[a-zA-Z0-9_-]+$`, b.ID)
				require.Regexp(t, `^[a-zA-Z0-9_-]{1,128}$`, b.Name)
				require.Equal(t, byte('{'), b.Input[0])
				require.False(t, seen[b.ID])
				seen[b.ID] = true
				open = append(open, b.ID)
			}
		}
		if last := blocks[len(blocks)-1].Type; role == "assistant" {
			require.NotContains(t, []string{"thinking", "redacted_thinking"}, last)
		}
	}
	require.Empty(t, open)
}

// validGemini: the user is first, and a content with calls is followed by one with as
// many responses.
func validGemini(t *testing.T, body []byte) {
	t.Helper()
	var r struct {
		Contents []struct {
			Role  string
			Parts []struct {
				Call     *struct{ Name string } `json:"functionCall"`
				Response *struct{ Name string } `json:"functionResponse"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(body, &r))
	require.NotEmpty(t, r.Contents)
	require.Equal(t, "user", r.Contents[0].Role)
	var open []string
	for _, c := range r.Contents {
		require.NotEmpty(t, c.Parts)
		var calls, responses []string
		for _, p := range c.Parts {
			if p.Call != nil {
				calls = append(calls, p.Call.Name)
			}
			if p.Response != nil {
				responses = append(responses, p.Response.Name)
			}
		}
		if len(open) > 0 || len(responses) > 0 {
			require.Equal(t, open, responses)
		}
		open = calls
	}
	require.Empty(t, open)
}
