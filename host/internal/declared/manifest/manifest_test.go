package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
)

func options(env map[string]string) manifest.Options {
	lookup := func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
	return manifest.Options{Expand: dialect.Variables{Env: lookup}.Expand, Lookup: lookup}
}

// TestManifestsOfPromptKit loads manifests written as that product's documents
// and examples write them.
func TestManifestsOfPromptKit(t *testing.T) {
	dir, err := filepath.Abs("testdata/tools")
	require.NoError(t, err)
	var s manifest.Set
	s.Read([]string{dir}, options(map[string]string{"GEO_API_KEY": "key", "GEO_TOKEN": "tok"}))
	s.Sort()
	require.Empty(t, s.Problems)
	tools := map[string]manifest.Tool{}
	var names []string
	for _, tool := range s.Tools {
		names = append(names, strings.TrimPrefix(tool.Namespace+"/", "/")+tool.Name)
		tools[tool.Name] = tool
	}
	require.Equal(t, []string{"calculate", "draw_chart", "geocode", "get_location", "get_weather", "lookup_order", "one", "two", "clock/now", "clock/zone"}, names)

	weather := tools["get_weather"]
	require.Equal(t, "The weather of a city.\nUse it before you speak of umbrellas.\n", weather.Description)
	require.Equal(t, time.Second, weather.Timeout)
	require.Equal(t, `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`, string(weather.Input), "members stay in the order of the file")
	require.Equal(t, `{"temperature_c":18,"conditions":"cloudy"}`, string(weather.Mock.Result))
	require.Equal(t, `"42"`, string(tools["calculate"].Mock.Result), "a text stays a text")
	require.Contains(t, tools["lookup_order"].Mock.Template, `"shipped"`)
	require.Equal(t, `{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}`, string(tools["draw_chart"].Mock.Parts[1]))
	require.Equal(t, "1.50", string(tools["one"].Mock.Result))
	require.Equal(t, "2.1.0", tools["now"].Version)
	require.Equal(t, "May your location be used?", tools["get_location"].Client.Message)

	geo := tools["geocode"].HTTP
	require.Equal(t, manifest.HTTP, tools["geocode"].Mode)
	require.Equal(t, 5*time.Second, geo.Timeout)
	require.Equal(t, "tok", geo.Headers["Authorization"].Reveal())
	require.Equal(t, "key", geo.Headers["GEO-API-KEY"].Reveal())
	require.Equal(t, "eu", geo.Headers["X-Region"].Reveal())
	require.Equal(t, []string{"api_key", "token"}, geo.Redact)
	require.Equal(t, "json", geo.Request.StaticQuery["format"])

	require.Equal(t, filepath.Join(dir, "run.sh"), tools["two"].Exec.Command[0])
	for _, file := range []string{".", "orders", "orders/lookup-order.tmpl", "dot.png"} {
		require.Contains(t, s.Files, filepath.Join(dir, file), "what a change of is one of the tools")
	}
}

// head begins a manifest whose spec follows.
const head = "apiVersion: promptkit.altairalabs.ai/v1\nkind: Tool\nmetadata: {name: a}\nspec:\n"

func TestWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a: b", "f.yaml:1: no manifest: want apiVersion, kind: Tool, metadata and spec"},
		{"a: [", "f.yaml:1: not YAML"},
		{"kind: Tool\nspec: {}", "f.yaml:1: apiVersion: want promptkit.altairalabs.ai/v1"},
		{"apiVersion: v1\nkind: Tool\nmetadata: {name: a}\nspec: {}", "f.yaml:1: tool a: apiVersion: want promptkit.altairalabs.ai/v1"},
		{"apiVersion: promptkit.altairalabs.ai/v1\nkind: Prompt\nspec: {}", "f.yaml:2: kind: is Prompt; want Tool"},
		{"apiVersion: promptkit.altairalabs.ai/v1\nkind: Tool\nmetadata: {name: a}", "f.yaml:1: tool a: spec: is missing: it describes the tool"},
		{"apiVersion: promptkit.altairalabs.ai/v1\nkind: Tool\nspec: {mock_result: 1}", "spec.name: want a name of 1 to 128 characters"},
		{head + "  mock_result: 1\n  mock_results: 2", "f.yaml:6: tool a: spec.mock_results: unknown; did you mean mock_result?"},
		{head + "  mock_result: 1\n  mode: moc", "tool a: spec.mode: is moc; want one of mock, http, chain, mcp, exec, client; did you mean mock?"},
		{head + "  description: x", "tool a: spec.mode: is missing; want one of"},
		{head + "  mode: http", "tool a: spec.http: is missing: it says how to execute the tool"},
		{head + "  mode: a2a\n  a2a: {}", "tool a: spec.mode: is a2a; want one of"},
		{head + "  mode: mock", "tool a: spec.mock_result: is missing; give it, or a mock_template"},
		{head + "  mock_result: 1\n  mock_template: '1'", "tool a: spec.mock_template: mock_result is also given"},
		{head + "  mock_template: '{{.a'", "f.yaml:5: tool a: spec.mock_template: :1: unclosed action"},
		{head + "  mock_template: '{{.b}}'\n  input_schema: {type: object, properties: {c: {}}, additionalProperties: false}", "tool a: spec.mock_template: uses the argument b, which input_schema does not have"},
		{head + "  mock_template_file: gone.tmpl", "tool a: spec.mock_template_file: "},
		{head + "  mock_result: 1\n  timeout_ms: soon", "f.yaml:6: tool a: spec.timeout_ms: want a whole number of milliseconds"},
		{head + "  mock_result: 1\n  timeout_ms: -1", "spec.timeout_ms: want a whole number of milliseconds from 0"},
		{head + "  mock_result: 1\n  input_schema: {type: 7}", "f.yaml:6: tool a: spec.input_schema: invalid JSON Schema: "},
		{head + "  mock_result: 1\n  input_schema: {type: string}", "spec.input_schema: want the schema of an object, because arguments are an object"},
		{head + "  mock_result: 1\n  input_schema: true", "spec.input_schema: want the schema of an object"},
		{head + "  mock_result: 1\n  output_schema: {$ref: 'https://h/x'}", "spec.output_schema: invalid JSON Schema: "},
		{head + "  mock_result: 1\n  output_schema: {type: string}", "f.yaml:5: tool a: spec.mock_result: does not fit output_schema: got number, want string"},
		{head + "  mock_result: 1\n  read_only: maybe", "spec.read_only: want true or false, not a string"},
		{head + "  mock_result: 1\n  annotations: {readOnlyHint: 7}", "spec.annotations.readOnlyHint: want true or false, not a number"},
		{head + "  mock_result: 1\n  mock_parts: [{type: video}]", "spec.mock_parts[0].type: is video; want text, image or audio"},
		{head + "  mock_result: 1\n  mock_parts: [{type: image, media: {data: '!'}}]", "spec.mock_parts[0].media: want a file_path, or data in base64, and a mime_type"},
		{head + "  http: {url: 'https://{h}/', method: GET}", "f.yaml:5: tool a: spec.http.url: has a parameter before the path"},
		{head + "  http: {url: '${BASE}/x', method: GET}", "tool a: spec.http.url: variable BASE is not set"},
		{head + "  http: {url: 'https://h/${', method: GET}", "tool a: spec.http.url: unclosed ${"},
		{head + "  http: {url: 'https://h/', headers_from_env: [NOPE]}", "tool a: spec.http.headers_from_env: variable NOPE is not set"},
		{head + "  http: {url: 'https://h/', headers_from_env: ['=X']}", "spec.http.headers_from_env: want NAME or Header=NAME"},
		{head + "  http: {url: 'https://h/', headers: [a]}", "spec.http.headers: want a map, not a list"},
		{head + "  http: {url: 'https://h/', allow_private: [example.com]}", "spec.http.allow_private: example.com is neither an address nor a network"},
		{head + "  http: {url: 'https://h/', query: 7}", "spec.http.query: want a map of parameters, or a list of arguments, not a number"},
		{head + "  http: {url: 'https://h/{b}', method: GET}\n  input_schema: {additionalProperties: false}", "spec.http: uses the argument b, which input_schema does not have"},
		{head + "  exec: {command: no-such-program-anywhere}", "f.yaml:5: tool a: spec.exec.command: no-such-program-anywhere not found on PATH; give its path"},
		{head + "  exec: {args: [x]}", "spec.exec.command: is missing"},
		{head + "  exec: {command: /bin/x, runtime: server}", "spec.exec.runtime: is server; programs are started for each call"},
		{head + "  mcp: {server: s}", "tool a: spec.mcp.tool: is missing"},
		{head + "  chain: {steps: [{tool: t, argz: {}}]}", "spec.chain.steps[0].argz: unknown; did you mean args?"},
		{head + "  chain: {steps: [{tool: t, on_error: retry}]}", "spec.chain.steps[0].on_error: is retry; want stop or continue"},
		{head + "  chain: [{tool: t, args: {x: '${steps.b.result}'}}]", "spec.chain.steps[0].args: ${steps.b.result} is not an earlier step"},
		{head + "  chain: 7", "tool a: spec.chain: want a map, not a number"},
		{head + "  mock_result: 1\n---\n" + head + "  mock_result: 2", "f.yaml:7: tool a: name: appears twice, also in f.yaml:1"},
	} {
		var s manifest.Set
		s.Parse("f.yaml", []byte(c.text), options(nil))
		s.Sort()
		require.ErrorContains(t, s.Problems.Err(), c.want, c.text)
	}
}

// TestFieldsOfOthersAreLeftOut: a manifest of a later version, with unknown fields, can be read.
func TestFieldsOfOthersAreLeftOut(t *testing.T) {
	var s manifest.Set
	s.Parse("f.yaml", []byte(head+"  mock_result: 1\n  quantum_mode: on"), options(nil))
	require.Len(t, s.Tools, 1)
	require.Equal(t, "f.yaml:6: tool a: spec.quantum_mode: unknown; ignored", s.Problems[0].String())
	require.NoError(t, s.Problems.Err())

	s = manifest.Set{}
	s.Parse("f.yaml", []byte(head+"  mock_result: 1\n  enabled: false"), options(nil))
	require.Empty(t, s.Tools)
	require.Empty(t, s.Problems)
}

func TestDeclared(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "one.yaml"), []byte(head+"  mock_result: 1"), 0o600))
	read := func(text string) manifest.Set {
		trees, problem := dialect.ParseTrees("toolroom.yaml", []byte(text))
		require.Nil(t, problem)
		var s manifest.Set
		s.ReadSection(filepath.Join(dir, "toolroom.yaml"), trees[0], options(nil))
		s.Sort()
		return s
	}
	s := read("- {file: one.yaml}\n- {name: b, mock_result: {x: 0x10, y: 1_000, z: .5}}\n- {apiVersion: promptkit.altairalabs.ai/v1, kind: Tool, metadata: {name: c}, spec: {mock_result: ~, mode: client}}")
	require.NoError(t, s.Problems.Err())
	require.Len(t, s.Tools, 3)
	require.Equal(t, `{"x":16,"y":1000,"z":0.5}`, string(s.Tools[1].Mock.Result))

	for text, want := range map[string]string{
		"7":                             "tools: want a map of tools by name, or a list, not a number",
		"a: 7":                          "tool a: want a map that describes the tool, not a number",
		"a: {mock_result: 1, zzzzz: 1}": "tool a: zzzzz: unknown; known are name, namespace",
		"a: {kind: Tool, spec: {}}":     "a whole manifest belongs in a list under tools:, or in a file",
		"- {file: gone.yaml}":           "gone.yaml: this manifest does not exist: create it, or correct its path",
		"- {mock_result: 1}":            "name: want a name of 1 to 128 characters",
	} {
		s := read(text)
		require.ErrorContains(t, s.Problems.Err(), want, text)
	}
}

func TestAToolOfAServerByItsName(t *testing.T) {
	var s manifest.Set
	s.Parse("f.yaml", []byte("tools:\n  mcp__fs__read__file: {mode: mcp}\n  other: {mode: mcp}"), options(nil))
	require.Equal(t, "fs", s.Tools[0].MCP.Server)
	require.Equal(t, "read__file", s.Tools[0].MCP.Tool)
	require.ErrorContains(t, s.Problems.Err(), "f.yaml:3: tool other: mcp: is missing")
}

func TestAlone(t *testing.T) {
	tools, texts, err := manifest.ReadStored("-", []byte(head+"  mock_result: 1.50"), options(nil))
	require.NoError(t, err)
	require.Len(t, tools, 1)
	again, _, err := manifest.ReadStored("-", texts[0], options(nil))
	require.NoError(t, err)
	require.Equal(t, tools[0].WithoutLocation(), again[0].WithoutLocation(), "the stored text is the given text")
	for text, want := range map[string]string{
		"":                                  "no manifest in this file",
		"tools: {a: {mock_result: 1}}":      "want whole manifests",
		head + "  mock_result_file: /etc/x": "refers to a file, which a registered tool cannot",
		head + "  exec: {command: ./x}":     "refers to a file, which a registered tool cannot",
	} {
		_, _, err := manifest.ReadStored("-", []byte(text), options(nil))
		require.ErrorContains(t, err, want, text)
	}
}
