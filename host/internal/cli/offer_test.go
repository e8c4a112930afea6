package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// toolNames are the names in an answer to tools/list.
func toolNames(t *testing.T, answer string) (names []string) {
	t.Helper()
	var m struct {
		Result struct{ Tools []struct{ Name string } }
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &m), answer)
	for _, tool := range m.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// A profile has a short list of its own, and what is not in it is not found,
// described or called through the tools that stand in for others.
func TestShortListsOfProfiles(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	edit(t, file, `
servers: {fix: {command: fixture, args: [-era, legacy, -filler, '60']}}
context: {max_tools: 10, pinned: [fix__fail]}
profiles:
  few: {allow: [fix__echo, fix__fail]}
  many: {block: ['fix__filler_000*']}
policy: {block: [fix__filler_0020]}
`)
	s := serve(t, "--config", file, "--state", t.TempDir())
	post := func(path, method, params string) string {
		s := s
		s.url += path
		status, body := s.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
		require.Equal(t, http.StatusOK, status)
		return body
	}
	whole := toolNames(t, post("", "tools/list", "{}"))
	require.Len(t, whole, 10)
	require.Equal(t, []string{"search_tools", "describe_tool", "call_tool", "fix__echo"}, whole[:4])
	require.Contains(t, whole, "fix__fail")
	require.Equal(t, []string{"fix__echo", "fix__fail"}, toolNames(t, post("/few", "tools/list", "{}")))
	require.Len(t, toolNames(t, post("/many", "tools/list", "{}")), 10)

	find := `{"name":"search_tools","arguments":{"query":"filler_0005"}}`
	call := func(name string) string {
		return `{"name":"call_tool","arguments":{"name":"` + name + `","arguments":{}}}`
	}
	require.Contains(t, post("", "tools/call", find), "fix__filler_0005:")
	require.Contains(t, post("", "tools/call", call("fix__filler_0005")), `"text":"filler_0005"`)
	require.NotContains(t, post("/many", "tools/call", find), "fix__filler_0005:")
	require.Contains(t, post("/many", "tools/call", call("fix__filler_0005")), "TOOL_NOT_FOUND")
	require.Contains(t, post("/many", "tools/call", call("fix__filler_0010")), `"text":"filler_0010"`)
	require.Contains(t, post("/few", "tools/call", call("fix__filler_0010")), "TOOL_NOT_FOUND")
	for _, path := range []string{"", "/many"} {
		require.Contains(t, post(path, "tools/call", call("fix__filler_0020")), "POLICY_DENIED")
		require.Contains(t, post(path, "tools/call", `{"name":"fix__filler_0020"}`), "POLICY_DENIED")
	}
}

// The list follows the configuration, and the client is told when it is
// another one, and not when only what is not listed is.
func TestAShortListFollowsTheConfiguration(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	file := filepath.Join(dir, "toolroom.yaml")
	const server = "servers: {fix: {command: fixture, args: [-era, legacy, -filler, '60']}}\n"
	edit(t, file, server+"context: {max_tools: 10}\n")
	c := stdio(t, "--config", file, "--state", dir)
	id := 1
	ask := func(method, params string) string {
		id++
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
		return c.read()
	}
	ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.Len(t, toolNames(t, ask("tools/list", "{}")), 10)

	require.Contains(t, ask("tools/call", `{"name":"call_tool","arguments":{"name":"fix__add_tool","arguments":{"text":"brand_new"}}}`), "added")
	require.Eventually(t, func() bool {
		answer := ask("tools/call", `{"name":"search_tools","arguments":{"query":"brand new"}}`)
		require.NotContains(t, answer, "list_changed")
		return strings.Contains(answer, "fix__brand_new:")
	}, time.Minute, 5*time.Millisecond)

	for _, step := range []struct {
		context string
		n       int
	}{{"context: {max_tools: 20}\n", 20}, {"", 85}, {"max_tools: 3\n", 3}} {
		edit(t, file, server+step.context)
		require.JSONEq(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, c.read())
		require.Len(t, toolNames(t, ask("tools/list", "{}")), step.n)
	}
}
