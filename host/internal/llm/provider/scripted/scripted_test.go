package scripted_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/scripted"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const story = `
window: 8000
answers:
  - when: {system: sub-agent}
    text: I am the sub-agent.
  - when: {tools: false, turn: 2}
    text: In sum, {{result}}.
  - when: {message: "fix (\\S+) in (\\S+)"}
    thinking: Hm.
    text: I look at {{2}} first.
    calls:
      - {name: view, args: {path: "{{2}}", limit: 10, deep: [{a: "{{1}}"}]}}
      - {name: grep, args: {pattern: "a $HOME {1}"}, id: mine}
      - {name: ls, raw: "{\"pa"}
  - when: {tool: "vi*", is_error: true, result: "no (file)"}
    text: There is no {{1}}.
  - when: {tool: view}
    answers:
      - {text: never}
      - {text: first, stop: length, usage: {input: 7, output: 3}}
      - {text: later}
  - when: {message: busy}
    error: RATE_LIMITED
    times: 2
  - when: {message: busy}
    text: now then
  - when: {message: cut}
    text: this is a text of more than one piece
    error: {code: TRANSPORT_ERROR, message: the line is cut, after: 2}
  - when: {message: slow}
    delay: 1h
    text: at last
  - when: {message: never}
    refusal: no
`

func open(t *testing.T, text string) *scripted.Model {
	t.Helper()
	m, err := scripted.Parse("a.yaml", []byte(text), provider.Info{Name: "s", Provider: "p"})
	require.NoError(t, err)
	return m
}

func user(text string) llm.Message {
	return llm.Message{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: text}}}
}

func called(id, name string) llm.Message {
	return llm.Message{Role: llm.AssistantRole, Parts: []llm.Part{{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(`{}`)}}}}
}

func result(id, text string, isError bool) llm.Message {
	return llm.Message{Role: llm.ToolRole, Parts: []llm.Part{{Type: llm.ResultPart, ToolResult: &llm.ToolResult{
		ID: id, IsError: isError, Content: []llm.Part{{Type: llm.TextPart, Text: text}}}}}}
}

func ask(t *testing.T, m provider.Model, messages ...llm.Message) (*llm.Response, error) {
	t.Helper()
	var s llm.ResponseBuilder
	res, err := m.Ask(t.Context(), &llm.Request{Messages: messages}, s.Add)
	s.FinishCalls()
	if res != nil {
		require.Equal(t, res.Parts, s.Response.Parts, "the pieces are the answer")
	}
	return res, err
}

func TestAnswers(t *testing.T) {
	m := open(t, story)
	require.Equal(t, provider.Info{Name: "s", Provider: "p", Window: 8000}, m.Info())
	res, err := ask(t, m, user("please fix it in a.go"))
	require.NoError(t, err)
	require.Equal(t, llm.StopCalls, res.StopReason)
	require.Equal(t, []llm.Part{
		{Type: llm.ThinkingPart, Text: "Hm."},
		{Type: llm.TextPart, Text: "I look at a.go first."},
		{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: "call_0_0", Name: "view", Args: json.RawMessage(`{"path":"a.go","limit":10,"deep":[{"a":"it"}]}`)}},
		{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: "mine", Name: "grep", Args: json.RawMessage(`{"pattern":"a $HOME {1}"}`)}},
		{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: "call_0_2", Name: "ls", Malformed: `{"pa`}},
	}, res.Parts)
	require.Positive(t, res.Usage.Input)
	require.Positive(t, res.Usage.Output)

	text := func(messages ...llm.Message) string {
		t.Helper()
		res, err := ask(t, m, messages...)
		require.NoError(t, err)
		return provider.TextOf(res.Parts)
	}
	require.Equal(t, "There is no file.", text(user("x"), called("1", "view"), result("1", "no file here", true)))
	require.Equal(t, "first", text(user("x"), called("1", "view"), result("1", "ok", false)))
	require.Equal(t, "later", text(user("x"), called("1", "ls"), result("1", "ok", false), called("1", "view"), result("1", "ok", false), called("1", "view"), result("1", "ok", false)))
	require.Equal(t, "In sum, ok.", text(user("x"), called("0", "ls"), result("0", "", false), called("1", "ls"), result("1", "ok", false)))
	require.Equal(t, "I am the sub-agent.", text(llm.Message{Role: llm.SystemRole, Parts: user("you are a sub-agent").Parts}, user("x")))
	_, err = ask(t, m, user("what no answer is for"))
	require.Equal(t, toolerr.ModelError, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "what no answer is for")
}

func TestErrorsAndWhatComesBeforeThem(t *testing.T) {
	m := open(t, story)
	for range 2 {
		res, err := ask(t, m, user("busy?"))
		require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(err))
		require.Nil(t, res)
	}
	res, err := ask(t, m, user("busy?"))
	require.NoError(t, err)
	require.Equal(t, "now then", provider.TextOf(res.Parts))
	res, err = ask(t, m, user("cut"))
	require.Equal(t, toolerr.TransportError, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "the line is cut")
	require.True(t, strings.HasPrefix("this is a text of more than one piece", provider.TextOf(res.Parts)))
	require.NotEmpty(t, provider.TextOf(res.Parts))
	res, err = ask(t, m, user("never"))
	require.NoError(t, err)
	require.Equal(t, llm.StopRefusal, res.StopReason)
}

func TestDelayIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, story)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := m.Ask(ctx, &llm.Request{Messages: []llm.Message{user("slow")}}, nil)
		require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err))
		res, err := m.Ask(t.Context(), &llm.Request{Messages: []llm.Message{user("slow")}}, nil)
		require.NoError(t, err)
		require.Equal(t, "at last", provider.TextOf(res.Parts))
	})
}

func TestCancelledBetweenPieces(t *testing.T) {
	m := open(t, `answers: [{text: "one two three four five six seven eight nine ten"}]`)
	ctx, cancel := context.WithCancel(t.Context())
	pieces := 0
	res, err := m.Ask(ctx, &llm.Request{Messages: []llm.Message{user("x")}}, func(llm.Delta) { pieces++; cancel() })
	require.Equal(t, toolerr.Cancelled, toolerr.CodeOf(err))
	require.Equal(t, 1, pieces)
	require.NotEmpty(t, res.Parts)
}

func TestManyAtOnce(t *testing.T) {
	m := open(t, `answers: [{times: 50, text: a}, {text: b}]`)
	var mu sync.Mutex
	var all sync.WaitGroup
	got := map[string]int{}
	for range 80 {
		all.Go(func() {
			res, err := m.Ask(t.Context(), &llm.Request{}, nil)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				got[provider.TextOf(res.Parts)]++
			}
		})
	}
	all.Wait()
	require.Equal(t, map[string]int{"a": 50, "b": 30}, got)
}

func TestWhatIsWrongWithAFile(t *testing.T) {
	for text, says := range map[string]string{
		"answers: []":                                        "either answers or a recording",
		"[a]":                                                "want one map",
		"answer: [{text: x}]":                                `unknown field "answer"`,
		"answers: [{txt: x}]":                                `unknown field "txt"`,
		"answers: [{error: OOPS}]":                           `"OOPS" is not a code`,
		"answers: [{when: {message: '('}}]":                  "missing closing",
		"answers: [{delay: 10}]":                             "duration",
		"answers: [{delay: -1s}]":                            "duration",
		"answers: [{calls: [{args: {}}]}]":                   "answers[0].calls[0]: name is missing",
		"answers: [{calls: [{name: a, args: [1]}]}]":         "args and raw cannot be combined",
		"answers: [{text: a, answers: [{text: b}]}]":         "a sequence cannot have parts",
		"answers: [{answers: [{times: -1}]}]":                "answers[0].answers[0]: times",
		"recording: nowhere.jsonl":                           "no such file",
		"a: [":                                               "a.yaml",
		"answers: [{error: {code: TIMEOUT, afterwards: 1}}]": `unknown field "afterwards"`,
	} {
		_, err := scripted.Parse("a.yaml", []byte(text), provider.Info{})
		require.ErrorContains(t, err, says, text)
	}
}

func TestASessionsCallsArePlayed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s.jsonl")
	require.NoError(t, os.WriteFile(name, []byte(`{"toolroom_session":1,"version":"v1","normalize":{"pointers":[],"patterns":[]}}
{"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}}
{"from":"client","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ls","arguments":{"path":"."}}}}
{"from":"host","message":{"jsonrpc":"2.0","id":2,"result":{"content":[]}}}
{"from":"client","message":{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"grep"}}}
`), 0o600))
	m, err := scripted.Open(name, provider.Info{Name: "r"})
	require.NoError(t, err)
	history := []llm.Message{user("go")}
	var names []string
	for range 3 {
		res, err := ask(t, m, history...)
		require.NoError(t, err)
		history = append(history, res.Message())
		for _, c := range res.Calls() {
			names = append(names, c.ID+" "+c.Name+" "+string(c.Args))
			history = append(history, result(c.ID, "ok", false))
		}
	}
	require.Equal(t, []string{`call_0_0 ls {"path":"."}`, "call_1_0 grep {}"}, names)
	require.Equal(t, "The recording ends here, after 2 calls.", provider.TextOf(history[len(history)-1].Parts))
}
