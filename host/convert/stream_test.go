package convert_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/convert"
)

func TestAStreamIsItsResponse(t *testing.T) {
	want := convert.Response{Parts: []convert.Part{
		{Type: convert.Thinking, Text: "hm", Signature: &convert.Signature{By: convert.Anthropic, Value: "s"}},
		{Type: convert.Text, Text: "so"},
		{Type: convert.Call, ToolCall: &convert.ToolCall{ID: "1", Name: "grep", Args: json.RawMessage(`{"pattern":"x"}`)}},
		{Type: convert.Call, ToolCall: &convert.ToolCall{ID: "2", Name: "view", Malformed: `{"path`}},
		{Type: convert.Call, ToolCall: &convert.ToolCall{ID: "3", Name: "ls", Args: json.RawMessage(`{}`)}},
		{Type: convert.Opaque, By: convert.OpenAI, Raw: json.RawMessage(`{"a":1}`)},
	}}
	var s convert.Stream
	for _, d := range want.Pieces() {
		for _, piece := range cut(d) {
			s.Add(piece)
		}
	}
	s.Calls()
	require.Equal(t, want, s.Response)
}

func TestADeltaOfNoPartIsLeftOut(t *testing.T) {
	var s convert.Stream
	s.Add(convert.Delta{Index: 3, Type: convert.Text, Text: "x"})
	s.Add(convert.Delta{Index: -1, Type: convert.Text, Text: "x"})
	s.Calls()
	require.Empty(t, s.Response.Parts)
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	for _, text := range []string{"null", "[]", `"x"`, "{", "1"} {
		var s convert.Stream
		s.Add(convert.Delta{Type: convert.Call, ID: "1", Name: "ls", Args: text})
		s.Calls()
		require.Equal(t, text, s.Response.Parts[0].ToolCall.Malformed)
		require.Nil(t, s.Response.Parts[0].ToolCall.Args)
	}
}

// cut makes a delta into one of every byte.
func cut(d convert.Delta) []convert.Delta {
	var pieces []convert.Delta
	first := d
	first.Text, first.Args, first.Signature = "", "", nil
	pieces = append(pieces, first)
	for i := range len(d.Text) {
		pieces = append(pieces, convert.Delta{Index: d.Index, Text: d.Text[i : i+1]})
	}
	for i := range len(d.Args) {
		pieces = append(pieces, convert.Delta{Index: d.Index, Args: d.Args[i : i+1]})
	}
	return append(pieces, convert.Delta{Index: d.Index, Signature: d.Signature})
}
