package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/anthropic"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/gemini"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/openai"
)

// A model gets the text of a result and not its structured content, whichever vendor's the
// model is. A result without text has its structured content as the text.
func TestModelsGetTheText(t *testing.T) {
	const text = `{"type":"text","text":"the text"}`
	for raw, want := range map[string]string{
		`{"content":[` + text + `],"structuredContent":{"counter":7}}`:                                          "the text",
		`{"structuredContent":{"counter":7},"content":[` + text + `],"_meta":{"meta":1}}`:                       "the text",
		`{"content":[],"structuredContent":{"counter":7}}`:                                                      `{"counter":7}`,
		`{"structuredContent":{"counter":7}}`:                                                                   `{"counter":7}`,
		`{"structuredContent":[7]}`:                                                                             `[7]`,
		`{"content":[{"type":"text","text":""}],"structuredContent":{"counter":7}}`:                             `{"counter":7}`,
		`{"content":[],"structuredContent":{"counter":7},"isError":true}`:                                       "output:\n" + `{"counter":7}`,
		`{"content":[` + text + `],"structuredContent":{"counter":7},"isError":true}`:                           "output:\nthe text",
		`{"content":[{"type":"image","data":"QUJD","mimeType":"image/png"}],"structuredContent":{"counter":7}}`: "",
	} {
		box := tools("view")
		box.call = func(context.Context, *llm.ToolCall, func(string)) (*call.Result, error) {
			return &call.Result{Raw: json.RawMessage(raw)}, nil
		}
		m := script(wants(to("", "view", `{}`)), says("done"))
		o := ask(t, agent.Config{Model: m, Tools: box})
		require.Equal(t, agent.EndGoal, o.Ending)
		request := m.asked[1]
		result := request.Messages[len(request.Messages)-1].Parts[0].ToolResult
		require.Contains(t, provider.ResultText(result), want, raw)
		require.Equal(t, strings.Contains(want, "7"), strings.Contains(provider.ResultText(result), "7"), raw)
		for vendor, sent := range map[string]json.RawMessage{
			"openai":    first(openai.EncodeRequest(&request, openai.Options{})),
			"anthropic": first(anthropic.EncodeRequest(&request, anthropic.Options{})),
			"gemini":    first(gemini.EncodeRequest(&request, gemini.Options{})),
		} {
			require.Equal(t, strings.Contains(want, "counter"), strings.Contains(string(sent), "counter"), "%s of %s: %s", vendor, raw, sent)
			require.Equal(t, strings.Contains(want, "the text"), strings.Contains(string(sent), "the text"), "%s of %s: %s", vendor, raw, sent)
		}
	}
}

func first(v interface{ JSON() json.RawMessage }, _ llm.Losses) json.RawMessage { return v.JSON() }

// Structured content that becomes the text is cut like any text.
func TestStructuredContentIsBounded(t *testing.T) {
	box := tools("view")
	box.call = func(context.Context, *llm.ToolCall, func(string)) (*call.Result, error) {
		return &call.Result{Raw: json.RawMessage(`{"structuredContent":{"words":"` + strings.Repeat("word ", 20_000) + `"}}`)}, nil
	}
	m := script(wants(to("", "view", `{}`)), says("done"))
	m.info.Window = 8000
	o := ask(t, agent.Config{Model: m, Tools: box})
	require.Equal(t, agent.EndGoal, o.Ending, o.Err)
	last := m.asked[1].Messages[len(m.asked[1].Messages)-1]
	require.Contains(t, provider.ResultText(last.Parts[0].ToolResult), "bytes omitted")
}
