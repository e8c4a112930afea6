package directcall_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/directcall"
)

func tools() []llm.Tool {
	return []llm.Tool{
		{Name: "grep", Input: json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"},"limit":{"type":"integer"},"deep":{"type":"boolean"}},"required":["pattern"]}`)},
		{Name: "ls"},
	}
}

func ask(t *testing.T, messages ...llm.Message) *llm.Response {
	t.Helper()
	var s llm.ResponseBuilder
	res, err := directcall.New("p").Ask(t.Context(), &llm.Request{Messages: messages, Tools: tools()}, s.Add)
	require.NoError(t, err)
	s.FinishCalls()
	require.Equal(t, res.Parts, s.Response.Parts)
	return res
}

func user(text string) llm.Message {
	return llm.Message{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: text}}}
}

func TestWhatIsTypedIsACall(t *testing.T) {
	for line, want := range map[string]string{
		"grep pattern=TODO path=src":         `grep {"path":"src","pattern":"TODO"}`,
		`/grep {"pattern":"TODO"}`:           `grep {"pattern":"TODO"}`,
		`grep{"pattern":"a b"}`:              `grep {"pattern":"a b"}`,
		"grep {\n  \"pattern\": \"x\"\n}":    "grep {\n  \"pattern\": \"x\"\n}",
		`grep pattern="a \"b\" \w" limit=3`:  `grep {"limit":3,"pattern":"a \"b\" \\w"}`,
		`grep pattern='a "b" = c' deep=true`: `grep {"deep":true,"pattern":"a \"b\" = c"}`,
		"grep TODO":                          `grep {"pattern":"TODO"}`,
		"grep 7":                             `grep {"pattern":"7"}`,
		`grep "two words" path=a`:            `grep {"path":"a","pattern":"two words"}`,
		`grep path=C:\dir pattern=ü`:         `grep {"path":"C:\\dir","pattern":"ü"}`,
		"  /ls  ":                            `ls {}`,
		"ls path=.":                          `ls {"path":"."}`,
	} {
		res := ask(t, user(line))
		require.Equal(t, llm.StopCalls, res.StopReason, line)
		require.Len(t, res.Calls(), 1)
		require.Equal(t, want, res.Calls()[0].Name+" "+string(res.Calls()[0].Args), line)
	}
}

func TestWhatIsNoCallIsToldWhatThereIs(t *testing.T) {
	for line, says := range map[string]string{
		"hello there":              `unknown tool "hello". `,
		"":                         "No model is configured",
		"help":                     "grep pattern=… [path=…] [limit=…] [deep=…]",
		"grep a b":                 "\"b\" is not key=value\nusage: grep pattern=…",
		`grep "a`:                  "unclosed quote",
		"grep {":                   "not one JSON object",
		"grep pattern=1 pattern=2": "given twice",
	} {
		res := ask(t, user(line))
		require.Equal(t, llm.StopEnd, res.StopReason, line)
		require.Contains(t, provider.TextOf(res.Parts), says, line)
	}
	res, err := directcall.New("p").Ask(t.Context(), &llm.Request{Messages: []llm.Message{user("ls")}, Tools: tools(), Choice: &llm.Choice{Mode: llm.ChoiceNone}}, nil)
	require.NoError(t, err)
	require.Empty(t, res.Calls())
	res, err = directcall.New("p").Ask(t.Context(), &llm.Request{}, nil)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(provider.TextOf(res.Parts), "there are no tools."))
}

func TestResultsAreTheAnswer(t *testing.T) {
	results := llm.Message{Role: llm.ToolRole, Parts: []llm.Part{
		{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: "a", Content: []llm.Part{{Type: llm.TextPart, Text: "one"}, {Type: llm.TextPart, Text: "two"}}}},
		{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: "b", IsError: true}},
		{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: "c", Structured: json.RawMessage(`{"a":1}`)}},
	}}
	res := ask(t, user("ls"), ask(t, user("ls")).Message(), results)
	require.Equal(t, "one\ntwo\n\nit failed without an error text\n\n{\"a\":1}", provider.TextOf(res.Parts))
	require.Equal(t, llm.StopEnd, res.StopReason)
	require.Equal(t, "call_1_0", ask(t, user("ls"), ask(t, user("ls")).Message(), results, user("ls")).Calls()[0].ID)
}
