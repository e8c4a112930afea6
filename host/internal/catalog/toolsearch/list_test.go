package toolsearch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog/toolsearch"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// source is a server with the tools it is told to have.
type source struct {
	name string
	mu   sync.Mutex
	defs []json.RawMessage
	err  error
}

func (s *source) Name() string { return s.name }

func (s *source) List(_ context.Context, kind call.ListKind) ([]json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind != call.Tools {
		return nil, nil
	}
	return slices.Clone(s.defs), s.err
}

func (s *source) set(names ...string) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.defs = nil
	for _, name := range names {
		s.defs = append(s.defs, json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"It %ss. And more.","inputSchema":{"type":"object","properties":{"%s_id":{"type":"string"},"n":{"type":"integer"}},"required":["n"]}}`,
			name, strings.ReplaceAll(name, "_", " "), name)))
	}
	return s
}

func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("tool_%03d", i))
	}
	return names
}

func open(t *testing.T, onChange func(catalog.Change), sources ...*source) *catalog.Catalog {
	t.Helper()
	var entries []catalog.SourceConfig
	for _, s := range sources {
		entries = append(entries, catalog.SourceConfig{Source: s})
	}
	c := catalog.New(entries, nil, onChange)
	t.Cleanup(c.Close)
	return c
}

func length(definition json.RawMessage) int { return len(definition) }

// listed are the names that a client sees.
func listed(t *testing.T, o *toolsearch.List) (names []string) {
	t.Helper()
	for _, modern := range []bool{false, true} {
		var list struct{ Tools []struct{ Name string } }
		raw := o.List(t.Context(), call.Tools, modern)
		require.NoError(t, json.Unmarshal(raw, &list))
		require.Equal(t, modern, strings.Contains(string(raw), `"resultType":"complete"`))
		var all []string
		for _, tool := range list.Tools {
			all = append(all, tool.Name)
		}
		require.True(t, !modern || slices.Equal(names, all))
		names = all
	}
	return names
}

const (
	waiting = 20 * time.Second
	tick    = time.Millisecond
)

func metaTools() []string { return []string{"search_tools", "describe_tool", "call_tool"} }

func TestWithinTheBoundsTheListIsTheCatalogues(t *testing.T) {
	c := open(t, nil, (&source{name: "s"}).set(numbered(10)...))
	want := string(c.View().List(t.Context(), call.Tools, false))
	for _, cfg := range []toolsearch.Config{{}, {MaxTools: 10}, {ToolsPercent: 1, Window: 1_000_000}} {
		o := toolsearch.New(cfg, c.View(), length)
		require.Equal(t, want, string(o.List(t.Context(), call.Tools, false)))
		require.Empty(t, o.List(t.Context(), call.Prompts, false)[len(`{"prompts":[]}`):])
	}
}

// A long result of a tool that is called by call_tool reaches the model as that of
// a listed tool does.
func TestCallToolHasTheLargestResultSize(t *testing.T) {
	s := (&source{name: "s"}).set(numbered(10)...)
	for i, meta := range map[int]string{3: `{"anthropic/maxResultSizeChars":70000}`, 7: `{"anthropic/maxResultSizeChars":100000}`, 8: `{"anthropic/maxResultSizeChars":"x"}`, 9: `7`} {
		s.defs[i] = json.RawMessage(strings.TrimSuffix(string(s.defs[i]), "}") + `,"_meta":` + meta + `}`)
	}
	c := open(t, nil, s)
	list := string(toolsearch.New(toolsearch.Config{MaxTools: 3}, c.View(), length).List(t.Context(), call.Tools, false))
	require.Equal(t, 1, strings.Count(list, `"_meta"`), list)
	require.Contains(t, list, `"annotations":{},"_meta":{"anthropic/maxResultSizeChars":100000}}`)
	c = open(t, nil, (&source{name: "s"}).set(numbered(10)...))
	require.NotContains(t, string(toolsearch.New(toolsearch.Config{MaxTools: 3}, c.View(), length).List(t.Context(), call.Tools, false)), "_meta")
}

func TestBeyondTheBoundsSomeStandInForTheRest(t *testing.T) {
	a, b := (&source{name: "a"}).set(numbered(10)...), (&source{name: "b"}).set("one", "two", "three")
	c := open(t, nil, a, b)
	for _, one := range []struct {
		cfg  toolsearch.Config
		want []string
	}{
		{toolsearch.Config{MaxTools: 3}, nil},
		{toolsearch.Config{MaxTools: 5}, []string{"a__tool_000", "a__tool_001"}},
		{toolsearch.Config{MaxTools: 6, Priority: []string{"b__*", "a__tool_009"}}, []string{"b__one", "b__two", "b__three"}},
		{toolsearch.Config{MaxTools: 6, Priority: []string{"a__tool_009", "b__*"}, Pinned: []string{"b__three"}}, []string{"a__tool_009", "b__one", "b__three"}},
		{toolsearch.Config{MaxTools: 3, Pinned: []string{"*_tool_00[", "b__t*"}}, []string{"b__two", "b__three"}},
		{toolsearch.Config{MaxTools: 12}, []string{"a__tool_000", "a__tool_001", "a__tool_002", "a__tool_003", "a__tool_004", "a__tool_005", "a__tool_006", "a__tool_007", "a__tool_008"}},
		{toolsearch.Config{MaxTools: 100, ToolsPercent: 1, Window: 10}, nil},
	} {
		o := toolsearch.New(one.cfg, c.View(), length)
		require.Equal(t, slices.Concat(metaTools(), one.want), listed(t, o), "%+v", one.cfg)
		for range 5 {
			require.Equal(t, o.List(t.Context(), call.Tools, true), toolsearch.New(one.cfg, c.View(), length).List(t.Context(), call.Tools, true), "the same each time")
		}
	}
	// Of the tokens of the window so many percent.
	o := toolsearch.New(toolsearch.Config{ToolsPercent: 10, Window: 25_000}, c.View(), length)
	raw := o.List(t.Context(), call.Tools, false)
	require.Less(t, len(raw), 2500+100)
	require.Greater(t, len(listed(t, o)), 4)
	// A profile has a list of its own.
	o = toolsearch.New(toolsearch.Config{MaxTools: 5}, c.Profile(catalog.Profile{Name: "p", Servers: []string{"b"}}), length)
	require.Equal(t, []string{"b__one", "b__two", "b__three"}, listed(t, o))
	o = toolsearch.New(toolsearch.Config{MaxTools: 4}, c.Profile(catalog.Profile{Name: "p", Block: []string{"*_000"}}), length)
	require.Equal(t, append(metaTools(), "a__tool_001"), listed(t, o))
	require.NotContains(t, resolve(t, o, "search_tools", `{"query":"tool_000"}`), "tool_000:")
	_, _, _, err := o.CallMetaTool(t.Context(), "call_tool", json.RawMessage(`{"name":"a__tool_000"}`))
	require.Equal(t, toolerr.ToolNotFound, toolerr.CodeOf(err))
}

func resolve(t *testing.T, o *toolsearch.List, name, arguments string) string {
	t.Helper()
	raw, tool, _, err := o.CallMetaTool(t.Context(), name, json.RawMessage(arguments))
	require.NoError(t, err)
	require.Nil(t, tool)
	var result struct {
		Content []struct{ Text string }
	}
	require.NoError(t, json.Unmarshal(raw, &result))
	require.Len(t, result.Content, 1)
	return result.Content[0].Text
}

func TestSearchDescribeAndCall(t *testing.T) {
	c := open(t, nil, (&source{name: "a"}).set(numbered(30)...), (&source{name: "git"}).set("create_branch", "deleteBranch", "list_tags"))
	o := toolsearch.New(toolsearch.Config{MaxTools: 4}, c.View(), length)
	o.List(t.Context(), call.Tools, false)
	require.Equal(t, "git__create_branch: It create branchs.\n  arguments: n integer, create_branch_id? string\n"+
		"git__deleteBranch: It deleteBranchs.\n  arguments: n integer, deleteBranch_id? string\n"+
		"Call one with call_tool {\"name\":…,\"arguments\":{…}}; describe_tool returns its whole definition.\n",
		resolve(t, o, "search_tools", `{"query":"creating branches"}`))
	require.Equal(t, 3, strings.Count(resolve(t, o, "search_tools", `{"server":"git"}`), "arguments:"))
	require.Contains(t, resolve(t, o, "search_tools", `{"query":"tool","limit":2}`), "(28 more match; be more specific in query, or raise limit)")
	require.Equal(t, 30, strings.Count(resolve(t, o, "search_tools", `{"query":"tool","limit":500}`), "arguments:"))
	require.Equal(t, "no tool matches \"zebra\" among 33; try other words, or a server: a, git\n", resolve(t, o, "search_tools", `{"query":"zebra"}`))
	require.Equal(t, "no server \"gut\"; available: a, git\n", resolve(t, o, "search_tools", `{"query":"branch","server":"gut"}`))
	for _, tool := range c.View().Current().Tools() {
		require.True(t, strings.HasPrefix(resolve(t, o, "search_tools", `{"query":"`+tool.Name+`"}`), tool.Name+": "), "who knows the name finds it first")
		require.Equal(t, string(tool.Definition), resolve(t, o, "describe_tool", `{"name":"`+tool.Name+`"}`))
		_, target, args, err := o.CallMetaTool(t.Context(), "call_tool", json.RawMessage(`{"arguments": {"n": 1.0}, "name":"`+tool.Name+`"}`))
		require.NoError(t, err)
		require.Same(t, tool, target)
		require.Equal(t, `{"n": 1.0}`, string(args))
	}
	for _, bad := range []struct{ tool, arguments, want string }{
		{"search_tools", `{"query":1}`, "INVALID_PARAMS search_tools: query must be a string"},
		{"search_tools", `{"query":"x","server":[]}`, "INVALID_PARAMS search_tools: server must be a string"},
		{"search_tools", `{"query":"x","limit":0}`, "INVALID_PARAMS search_tools: limit must be a whole number from 1 to 50"},
		{"search_tools", `{"query":"x","limit":1.5}`, "INVALID_PARAMS search_tools: limit must be a whole number from 1 to 50"},
		{"search_tools", `{"query":" "}`, "MISSING_PARAMETER search_tools: describe the task in query, or give a server"},
		{"search_tools", `{"query":"a","query":"b"}`, `INVALID_PARAMS search_tools: arguments: member "query" appears more than once`},
		{"search_tools", `[]`, "INVALID_PARAMS search_tools: arguments: not JSON at byte 0: expected {"},
		{"describe_tool", `{}`, "MISSING_PARAMETER describe_tool: name is missing; search_tools finds names"},
		{"describe_tool", `{"name":"create"}`, `TOOL_NOT_FOUND no tool "create"; the closest are git__create_branch`},
		{"describe_tool", `{"name":"zebra"}`, `TOOL_NOT_FOUND no tool "zebra"; search_tools finds tool names`},
		{"call_tool", `{"name":"git__list_tags","name":"a__tool_000"}`, `INVALID_PARAMS call_tool: arguments: member "name" appears more than once`},
		{"call_tool", `{"Name":"git__list_tags"}`, `INVALID_PARAMS call_tool takes name, arguments, not Name; the tool's own arguments go into arguments`},
		{"call_tool", `{"name":"git__list_tags","arguments":[]}`, `INVALID_PARAMS call_tool: arguments must be an object that fits the definition of git__list_tags, not text`},
		{"git__list_tags", `{}`, "TOOL_NOT_FOUND there is no tool git__list_tags"},
	} {
		result, tool, _, err := o.CallMetaTool(t.Context(), bad.tool, json.RawMessage(bad.arguments))
		require.Nil(t, result)
		require.Nil(t, tool)
		require.Error(t, err, bad.arguments)
		require.Equal(t, bad.want, string(toolerr.CodeOf(err))+" "+err.Error())
	}
}

func TestCallOfAToolThatIsNotListed(t *testing.T) {
	c := open(t, nil, (&source{name: "a"}).set(numbered(20)...), &source{name: "down", err: errors.New("it is down")})
	o := toolsearch.New(toolsearch.Config{MaxTools: 5}, c.View(), length)
	_, target, _, err := o.CallMetaTool(t.Context(), "call_tool", json.RawMessage(`{"name":"down__x"}`))
	require.NoError(t, err)
	require.Equal(t, "down__x", target.Name)
	require.NotNil(t, target.Unlisted)
	_, _, _, err = o.CallMetaTool(t.Context(), "describe_tool", json.RawMessage(`{"name":"down__x"}`))
	require.ErrorContains(t, err, `no tool "down__x"`)
}

// A server's tool with the name of one that stands in for others has its name
// while the list is whole, and can be called with call_tool after that.
func TestAServersToolOfTheSameName(t *testing.T) {
	s := (&source{name: "s"}).set("call_tool", "x")
	none := ""
	c := catalog.New([]catalog.SourceConfig{{Source: s, Prefix: &none}}, nil, nil)
	t.Cleanup(c.Close)
	o := toolsearch.New(toolsearch.Config{MaxTools: 4}, c.View(), length)
	require.Equal(t, []string{"call_tool", "x"}, listed(t, o))
	require.False(t, o.IsMetaTool("call_tool"))
	require.True(t, o.IsMetaTool("search_tools"), "who has seen it when the list was long may still use it")
	require.False(t, toolsearch.New(toolsearch.Config{}, c.View(), length).IsMetaTool("search_tools"))

	s.set("call_tool", "x", "y", "z", "w")
	c.Refresh("s")
	require.Eventually(t, func() bool { return len(c.View().Current().Tools()) == 5 }, waiting, tick)
	require.Equal(t, append(metaTools(), "x"), listed(t, o))
	require.True(t, o.IsMetaTool("call_tool"))
	_, tool, _, err := o.CallMetaTool(t.Context(), "call_tool", json.RawMessage(`{"name":"call_tool"}`))
	require.NoError(t, err)
	require.Equal(t, "s", tool.Server)
}

// Of the tools of this repository each is found by what one would say that
// wants it.
func TestOurToolsAreFoundByWhatTheyAreFor(t *testing.T) {
	files, err := filepath.Glob("../../../../tools/*/testdata/tool.json")
	require.NoError(t, err)
	ours := &source{name: "ours"}
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		var list struct{ Tools []json.RawMessage }
		require.NoError(t, json.Unmarshal(text, &list), name)
		require.NotEmpty(t, list.Tools, name)
		ours.defs = append(ours.defs, list.Tools...)
	}
	c := open(t, nil, ours, (&source{name: "s"}).set(numbered(200)...))
	o := toolsearch.New(toolsearch.Config{MaxTools: 3}, c.View(), length)
	for query, want := range map[string]string{
		"find files by name pattern":        "ours__glob",
		"search text in files with a regex": "ours__grep",
		"run a shell command":               "ours__bash",
		"show the directory as a tree":      "ours__ls",
		"read lines of a file":              "ours__view",
		"edit a piece of text in a file":    "ours__edit",
		"write a whole new file":            "ours__replace",
		"stop a background job":             "ours__bash_job",
	} {
		text := resolve(t, o, "search_tools", `{"query":"`+query+`"}`)
		first, _, _ := strings.Cut(text, ":")
		require.Equal(t, want, first, "%s\n%s", query, text)
	}
}

// A change of what is not listed is none for the client.
func TestChangesAreOfWhatIsListed(t *testing.T) {
	var mu sync.Mutex
	var changes []catalog.Change
	s := (&source{name: "s"}).set(numbered(10)...)
	c := open(t, func(ch catalog.Change) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, ch)
	}, s)
	o := toolsearch.New(toolsearch.Config{MaxTools: 5}, c.View(), length)
	whole := toolsearch.New(toolsearch.Config{}, c.View(), length)
	o.List(t.Context(), call.Tools, false)
	change := func(n int) catalog.Change {
		t.Helper()
		s.set(numbered(n)...)
		c.Refresh("s", call.Tools)
		require.Eventually(t, func() bool { return len(c.View().Current().Tools()) == n }, waiting, tick)
		require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(changes) > 0 }, waiting, tick)
		mu.Lock()
		defer mu.Unlock()
		last := changes[len(changes)-1]
		changes = nil
		return last
	}
	ch := change(11)
	require.False(t, o.IsAffectedBy(ch))
	require.True(t, whole.IsAffectedBy(ch))
	require.Contains(t, resolve(t, o, "search_tools", `{"query":"tool_010"}`), "s__tool_010:", "and is found at once")
	require.True(t, o.IsAffectedBy(change(4)), "the list is whole again")
	require.True(t, o.IsAffectedBy(change(9)))
	require.False(t, o.HasSameList(whole, call.Tools))
	require.True(t, o.HasSameList(toolsearch.New(toolsearch.Config{MaxTools: 5}, c.View(), length), call.Tools))
	require.True(t, o.HasSameList(whole, call.Prompts))
}

func TestValidate(t *testing.T) {
	for _, good := range []toolsearch.Config{{}, {MaxTools: 3}, {ToolsPercent: 100, Window: 1}, {MaxTools: 9, Pinned: []string{"x"}}} {
		require.NoError(t, good.Validate())
	}
	for _, bad := range []toolsearch.Config{{MaxTools: 2}, {MaxTools: -1}, {ToolsPercent: 101}, {ToolsPercent: -1}, {Window: -1}, {Pinned: []string{"x"}}, {Window: 9}} {
		require.ErrorContains(t, bad.Validate(), "context: ")
	}
}

func BenchmarkOffer(b *testing.B) {
	s := (&source{name: "s"}).set(numbered(1000)...)
	c := catalog.New([]catalog.SourceConfig{{Source: s}}, nil, nil)
	b.Cleanup(c.Close)
	o := toolsearch.New(toolsearch.Config{MaxTools: 50}, c.View(), length)
	o.List(b.Context(), call.Tools, false)
	b.Run("list of 1000", func(b *testing.B) {
		for b.Loop() {
			toolsearch.New(toolsearch.Config{MaxTools: 50}, c.View(), length).List(b.Context(), call.Tools, false)
		}
	})
	b.Run("first search among 1000", func(b *testing.B) {
		for b.Loop() {
			toolsearch.New(toolsearch.Config{MaxTools: 50}, c.View(), length).CallMetaTool(b.Context(), "search_tools", json.RawMessage(`{"query":"tool 500"}`)) //nolint:errcheck // the tests look
		}
	})
	b.Run("search among 1000", func(b *testing.B) {
		for b.Loop() {
			o.CallMetaTool(b.Context(), "search_tools", json.RawMessage(`{"query":"tool 500"}`)) //nolint:errcheck // likewise
		}
	})
}
