package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
)

func TestAStreamIsItsResponse(t *testing.T) {
	want := llm.Response{Parts: []llm.Part{
		{Type: llm.ThinkingPart, Text: "hm", Signature: &llm.Signature{Vendor: llm.Anthropic, Value: "s"}},
		{Type: llm.TextPart, Text: "so"},
		{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: "1", Name: "grep", Args: json.RawMessage(`{"pattern":"x"}`)}},
		{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: "2", Name: "view", Malformed: `{"path`}},
		{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: "3", Name: "ls", Args: json.RawMessage(`{}`)}},
		{Type: llm.OpaquePart, Vendor: llm.OpenAI, Raw: json.RawMessage(`{"a":1}`)},
	}}
	var s llm.ResponseBuilder
	for _, d := range want.Deltas() {
		for _, piece := range cut(d) {
			s.Add(piece)
		}
	}
	s.FinishCalls()
	require.Equal(t, want, s.Response)
}

func TestADeltaOfNoPartIsLeftOut(t *testing.T) {
	var s llm.ResponseBuilder
	s.Add(llm.Delta{Index: 3, Type: llm.TextPart, Text: "x"})
	s.Add(llm.Delta{Index: -1, Type: llm.TextPart, Text: "x"})
	s.FinishCalls()
	require.Empty(t, s.Response.Parts)
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	for _, text := range []string{"null", "[]", `"x"`, "{", "1"} {
		var s llm.ResponseBuilder
		s.Add(llm.Delta{Type: llm.CallPart, ID: "1", Name: "ls", Args: text})
		s.FinishCalls()
		require.Equal(t, text, s.Response.Parts[0].ToolCall.Malformed)
		require.Nil(t, s.Response.Parts[0].ToolCall.Args)
	}
}

// cut makes a delta into one of every byte.
func cut(d llm.Delta) []llm.Delta {
	var pieces []llm.Delta
	first := d
	first.Text, first.Args, first.Signature = "", "", nil
	pieces = append(pieces, first)
	for i := range len(d.Text) {
		pieces = append(pieces, llm.Delta{Index: d.Index, Text: d.Text[i : i+1]})
	}
	for i := range len(d.Args) {
		pieces = append(pieces, llm.Delta{Index: d.Index, Args: d.Args[i : i+1]})
	}
	return append(pieces, llm.Delta{Index: d.Index, Signature: d.Signature})
}
