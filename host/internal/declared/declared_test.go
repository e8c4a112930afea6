package declared_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
)

// of makes the tools of a configuration's text.
func of(t *testing.T, text string) []*declared.Tool {
	t.Helper()
	var s manifest.Set
	s.Parse("f.yaml", []byte("tools:\n"+text), manifest.Options{})
	s.Sort()
	require.NoError(t, s.Problems.Err())
	var tools []*declared.Tool
	for _, spec := range s.Tools {
		one, err := declared.New(spec, declared.Deps{})
		require.NoError(t, err)
		tools = append(tools, one)
	}
	return tools
}

func TestDefinitions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"  a: {mock_result: 1}", `{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":true}}`},
		{"  a: {mock_result: 1, read_only: false, idempotent: false, title: T, description: D, version: v}",
			`{"name":"a","title":"T","description":"D","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"idempotentHint":false},"_meta":{"io.github.toolroom-mcp/tool":{"version":"v"}}}`},
		{"  a: {mock_result: [1], output_schema: {type: array}, input_schema: {properties: {x: {}}}}",
			`{"name":"a","inputSchema":{"properties":{"x":{}},"type":"object"},"outputSchema":{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]},"annotations":{"readOnlyHint":true,"idempotentHint":true}}`},
		{"  a: {mock_result: {}, output_schema: {type: object}, namespace: n, annotations: {openWorldHint: false, readOnlyHint: false}}",
			`{"name":"n__a","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"openWorldHint":false,"readOnlyHint":false,"idempotentHint":true}}`},
		{"  a: {http: {url: 'https://h/', method: DELETE}}", `{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"idempotentHint":true}}`},
		{"  a: {http: {url: 'https://h/'}}", `{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"idempotentHint":false}}`},
		{"  a: {mcp: {server: s, tool: t}}", `{"name":"a","inputSchema":{"type":"object"},"_meta":{"toolroom/call":{"timeoutMs":0,"control":true}}}`},
	} {
		one := of(t, c.text)[0]
		list, err := one.List(t.Context(), call.Tools)
		require.NoError(t, err)
		require.Equal(t, c.want, string(list[0]))
		require.Equal(t, list, one.Known(call.Tools))
		require.Empty(t, one.Known(call.Prompts))
	}
}

func TestServedNames(t *testing.T) {
	for name, want := range map[string]string{
		"get_weather":            `^get_weather$`,
		"weather.get":            `^weather_get_[0-9a-f]{8}$`,
		"wetter für morgen":      `^wetter_f_r_morgen_[0-9a-f]{8}$`,
		strings.Repeat("x", 100): `^x{55}_[0-9a-f]{8}$`,
	} {
		require.Regexp(t, want, declared.ServedName(manifest.Tool{Name: name}))
	}
	require.Equal(t, "n__a", declared.ServedName(manifest.Tool{Name: "a", Namespace: "n"}))
}

func TestVersionsTellStatesApart(t *testing.T) {
	one, other := of(t, "  a: {mock_result: 1, description: x}")[0], of(t, "  a: {mock_result: 1, description: y}")[0]
	require.NotEqual(t, one.Version(), other.Version())
	require.True(t, strings.HasPrefix(of(t, "  a: {mock_result: 1, version: 1.2.3}")[0].Version(), "1.2.3 "))
}
