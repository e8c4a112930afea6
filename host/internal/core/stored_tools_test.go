package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// declaring are the tools of a configuration's text.
func declaring(t *testing.T, text string) []manifest.Tool {
	t.Helper()
	var s manifest.Set
	s.Parse("f.yaml", []byte("tools:\n"+text), manifest.Options{})
	s.Sort()
	require.NoError(t, s.Problems.Err())
	return s.Tools
}

func onStore(t *testing.T, dir string, cfg config.Config) *core.App {
	t.Helper()
	cfg.Store = backend.Config{Dir: dir}
	a, err := core.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

func manifestOf(name, spec string) []byte {
	return fmt.Appendf(nil, "apiVersion: promptkit.altairalabs.ai/v1\nkind: Tool\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
}

func TestWhatMayNotBeRegistered(t *testing.T) {
	dir := t.TempDir()
	a := onStore(t, dir, config.Config{Servers: []config.Server{everything("srv", "legacy")}, Declared: declaring(t, "  taken: {mock_result: 1}")})
	for _, c := range []struct{ name, spec, want string }{
		{"taken", "mock_result: 1", "is used by the configuration"},
		{"srv", "mock_result: 1", "is used by the configuration"},
		{"srv__test_simple_text", "mock_result: 1", "also that of a tool of server srv"},
		{"self", "chain: [{tool: self}]", "it calls itself"},
		{"again", "mcp: {server: again, tool: again}", "it calls itself"},
	} {
		_, err := a.Declare(t.Context(), "f", manifestOf(c.name, c.spec))
		require.ErrorContains(t, err, c.want, c.name)
	}
	names, err := a.Declare(t.Context(), "f", manifestOf("one", "chain: [{tool: two}]"))
	require.NoError(t, err, "the other is not there yet")
	require.Equal(t, []string{"one"}, names)
	_, err = a.Declare(t.Context(), "f", manifestOf("two", "chain: [{tool: one}]"))
	require.ErrorContains(t, err, "it calls itself", "through one that is registered")

	// A server that comes later has its names: what was registered waits.
	_, err = a.Declare(t.Context(), "f", manifestOf("late__test_simple_text", "mock_result: ours"))
	require.NoError(t, err)
	later := onStore(t, dir, config.Config{Servers: []config.Server{everything("late", "legacy")}})
	answer, err := later.Call(t.Context(), "late__test_simple_text", nil)
	require.NoError(t, err)
	require.Equal(t, "This is a simple text response for testing.", answer.Text)
}

// Two hosts with one store: each serves what is there when it is asked.
func TestHostsSeeWhatOthersRegister(t *testing.T) {
	dir := t.TempDir()
	one, two := onStore(t, dir, config.Config{}), onStore(t, dir, config.Config{})
	listed := func() (names []string) {
		for _, tool := range two.List(t.Context()) {
			names = append(names, tool.Name)
		}
		return names
	}
	said := func(name string) string {
		answer, err := two.Call(t.Context(), name, nil)
		if err != nil {
			return string(toolerr.CodeOf(err))
		}
		return answer.Text
	}
	require.Empty(t, listed(), "there is no store yet")
	for i, step := range []struct {
		declare, forget string
		list            []string
		says            string // of a
	}{
		{declare: "a", list: []string{"a"}, says: "0"},
		{declare: "a", list: []string{"a"}, says: "1"},
		{declare: "b", list: []string{"a", "b"}, says: "1"},
		{forget: "a", list: []string{"b"}, says: "TOOL_NOT_FOUND"},
		{declare: "a", list: []string{"a", "b"}, says: "4"},
		{forget: "b", list: []string{"a"}, says: "4"},
	} {
		if step.declare != "" {
			_, err := one.Declare(t.Context(), "f", manifestOf(step.declare, fmt.Sprintf("mock_result: %d", i)))
			require.NoError(t, err)
		} else {
			require.NoError(t, one.Undeclare(t.Context(), step.forget))
		}
		if i%2 == 0 { // a call or a list, whichever is first, sees it
			require.Equal(t, step.says, said("a"), "%d", i)
		}
		require.Equal(t, step.list, listed(), "%d", i)
		require.Equal(t, step.says, said("a"), "%d", i)
	}
	_, err := one.Declare(t.Context(), "f", manifestOf("c", "chain: [{tool: a}]"))
	require.NoError(t, err)
	require.Equal(t, "4", said("c"))
	require.NoError(t, one.Undeclare(t.Context(), "a"))
	require.Equal(t, "TOOL_NOT_FOUND", said("c"), "a step is one of what is there now, too")
}

// A question of a step's server, to a client of the era that is asked by the
// answer, is put to it in the chain's place, and is no step's result.
func TestAStepsQuestion(t *testing.T) {
	a := onStore(t, t.TempDir(), config.Config{
		Servers:  []config.Server{everything("new", "modern")},
		Declared: declaring(t, "  both: {chain: {steps: [{id: q, tool: new__test_input_required_result_elicitation}], result: {said: '${steps.q.text}'}}}"),
	})
	tool, ok := a.Get(t.Context(), "both")
	require.True(t, ok)
	asked := 0
	res, err := a.Handler(t.Context(), &call.Request{
		Tool: tool, Params: json.RawMessage(`{"name":"both","arguments":{}}`),
		Caller: call.Caller{EntryPoint: "http", ID: "c", Modern: true, Capabilities: json.RawMessage(`{"elicitation":{}}`)},
		Ask: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			asked++
			require.Equal(t, "elicitation/create", method)
			return json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`), nil
		},
	})
	require.NoError(t, err)
	require.Equal(t, 1, asked)
	require.Contains(t, string(res.Raw), `Ada`)
	require.NotContains(t, string(res.Raw), "input_required")
}
