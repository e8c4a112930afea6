package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/convert"
	"github.com/toolroom-mcp/toolroom/host/provider"
	"github.com/toolroom-mcp/toolroom/host/provider/command"
)

func tools() []convert.Tool {
	return []convert.Tool{
		{Name: "grep", Input: json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"},"limit":{"type":"integer"},"deep":{"type":"boolean"}},"required":["pattern"]}`)},
		{Name: "ls"},
	}
}

func ask(t *testing.T, messages ...convert.Message) *convert.Response {
	t.Helper()
	var s convert.Stream
	res, err := command.New("p").Ask(t.Context(), &convert.Request{Messages: messages, Tools: tools()}, s.Add)
	require.NoError(t, err)
	s.Calls()
	require.Equal(t, res.Parts, s.Response.Parts)
	return res
}

func user(text string) convert.Message {
	return convert.Message{Role: convert.User, Parts: []convert.Part{{Type: convert.Text, Text: text}}}
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
		require.Equal(t, convert.StopCalls, res.Stop, line)
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
		require.Equal(t, convert.StopEnd, res.Stop, line)
		require.Contains(t, provider.TextOf(res.Parts), says, line)
	}
	res, err := command.New("p").Ask(t.Context(), &convert.Request{Messages: []convert.Message{user("ls")}, Tools: tools(), Choice: &convert.Choice{Mode: convert.None}}, nil)
	require.NoError(t, err)
	require.Empty(t, res.Calls())
	res, err = command.New("p").Ask(t.Context(), &convert.Request{}, nil)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(provider.TextOf(res.Parts), "there are no tools."))
}

func TestResultsAreTheAnswer(t *testing.T) {
	results := convert.Message{Role: convert.ToolRole, Parts: []convert.Part{
		{Type: convert.Result, ToolResult: &convert.ToolResult{ID: "a", Content: []convert.Part{{Type: convert.Text, Text: "one"}, {Type: convert.Text, Text: "two"}}}},
		{Type: convert.Result, ToolResult: &convert.ToolResult{ID: "b", IsError: true}},
		{Type: convert.Result, ToolResult: &convert.ToolResult{ID: "c", Structured: json.RawMessage(`{"a":1}`)}},
	}}
	res := ask(t, user("ls"), ask(t, user("ls")).Message(), results)
	require.Equal(t, "one\ntwo\n\nit failed without an error text\n\n{\"a\":1}", provider.TextOf(res.Parts))
	require.Equal(t, convert.StopEnd, res.Stop)
	require.Equal(t, "call_1_0", ask(t, user("ls"), ask(t, user("ls")).Message(), results, user("ls")).Calls()[0].ID)
}
