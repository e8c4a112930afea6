package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/declared"
)

// declaring loads a configuration of that name and text.
func declaring(t *testing.T, name, text string) (config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tools"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tools", "a.tool.yaml"), []byte("apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Tool\nmetadata: {name: from_file}\nspec: {mock_result: 1}\n"), 0o600))
	return config.Load(config.Flags{Config: file}, t.TempDir(), "1", func(string) string { return "" }, nil)
}

func TestDeclaredNames(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	server := "servers: {fix: {command: " + self + "}, web: {url: 'https://h/mcp'}, off: {command: x, enabled: false}}\n"
	for _, c := range []struct{ text, want string }{
		{"tools: {fix: {mock_result: 1}}", "tool fix: name: its served name fix is the name of server fix; choose another"},
		{"tools: {web: {mock_result: 1}}", "is the name of server web"},
		{"tools: {off: {mock_result: 1}}", "is the name of server off"},
		{"tools: {fix__x: {mock_result: 1}}", "its served name fix__x is also that of a tool of server fix"},
		{"tools: {x: {mock_result: 1, namespace: web}}", "its served name web__x is also that of a tool of server web"},
		{"tools: {a__b: {mock_result: 1}, b: {mock_result: 1, namespace: a}}", "its served name a__b is the name of the declared tool"},
		{"tools: {from_file: {mock_result: 1}}\nmanifests: [tools]", "tool from_file: name: appears twice"},
		{"tools: {a: {chain: [{tool: b}]}, b: {chain: [{parallel: [{tool: a}]}]}}", "tool a: chain: it calls itself"},
		{"tools: {a: {chain: [{tool: a}]}}", "tool a: chain: it calls itself"},
		{"tools: {a: {mcp: {server: fxi, tool: echo}}}", "tool a: mcp.server: no server fxi; did you mean fix?"},
		{"tools: {a: {mcp: {server: a, tool: a}}}", "tool a: mcp: it calls itself"},
		{"tools: {a: {mcp: {server: b, tool: b}}, b: {chain: [{tool: a}]}}", "tool a: mcp: it calls itself"},
		{"manifests: [gone]", "gone: this manifest does not exist: create it"},
		{"manifests: ['${NOPE}']", "manifests: variable NOPE is not set"},
	} {
		_, err := declaring(t, "toolroom.yaml", server+c.text)
		require.ErrorContains(t, err, c.want, c.text)
	}
}

func TestDeclaredToolsInEveryDialect(t *testing.T) {
	for name, text := range map[string]string{
		"toolroom.yaml": "manifests: [tools]\ntools: [{name: b, mock_result: 1}]",
		"toolroom.json": `{"manifests": ["tools"], "tools": {"b": {"mock_result": 1}}}`,
		"toolroom.toml": "manifests = [\"tools\"]\n[tools.b]\nmock_result = 1\n",
		"mcp.json":      `{"mcpServers": {}, "toolroom": {"manifests": ["tools"], "tools": {"b": {"mock_result": 1}}}}`,
		"config.arena.yaml": "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Arena\nmetadata: {name: x}\n" +
			"spec:\n  tools:\n    - file: tools/a.tool.yaml\n    - {name: b, mock_result: 1}\n",
	} {
		c, err := declaring(t, name, text)
		require.NoError(t, err, name)
		var names []string
		for _, tool := range c.Declared {
			names = append(names, declared.ServedName(tool))
		}
		require.Equal(t, []string{"b", "from_file"}, names, name)
	}
}
