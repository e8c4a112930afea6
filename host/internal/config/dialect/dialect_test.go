package dialect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"go.yaml.in/yaml/v3"
)

// marker is in every credential of the fixtures that is written out.
const marker = "SEKRIT"

func fixtures(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/fixtures/*")
	require.NoError(t, err)
	var files []string
	for _, file := range all {
		if !strings.HasSuffix(file, ".want.yaml") && !strings.HasSuffix(file, ".md") {
			files = append(files, file)
		}
	}
	require.GreaterOrEqual(t, len(files), 15)
	return files
}

// canonical is a document in toolroom's own words, with its problems.
func canonical(t *testing.T, d *dialect.Document) string {
	t.Helper()
	servers := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range d.Servers {
		name := &yaml.Node{}
		name.SetString(s.Name)
		servers.Content = append(servers.Content, name, s.Encode(d.Inputs, true))
	}
	var b strings.Builder
	for _, p := range d.Problems {
		p.File = filepath.Base(p.File)
		fmt.Fprintf(&b, "# %s\n", p)
	}
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	require.NoError(t, e.Encode(map[string]any{"servers": servers}))
	return b.String()
}

func TestDialects(t *testing.T) {
	for _, file := range fixtures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			d := dialect.Parse(file, text, dialect.Options{})
			require.NoError(t, d.Problems.Err())
			got := canonical(t, d)
			golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".want.yaml"
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)

			// What it means is the same when it is read again.
			again := dialect.Parse("toolroom.yaml", []byte(got), dialect.Options{})
			require.Empty(t, again.Problems)
			_, rest, _ := strings.Cut(got, "servers:")
			_, back, _ := strings.Cut(canonical(t, again), "servers:")
			require.Equal(t, rest, back)

			// Nothing of it shows a credential.
			for _, s := range d.Servers {
				hidden, err := yaml.Marshal(s.Encode(d.Inputs, false))
				require.NoError(t, err)
				require.NotContains(t, string(hidden)+fmt.Sprintf("%v %+v %#v %s %+v %q", s, s, s, s.RedactedTarget(), s.View(), s), marker)
			}
			require.NotContains(t, fmt.Sprintf("%+v", d), marker)
		})
	}
}

// Of two servers of a name Claude Code takes the one of the narrower scope, and
// leaves out those that are switched off in the project. It keeps much more in
// that file than a configuration has.
func TestClaudeCodesOwnFile(t *testing.T) {
	text := func(more string) []byte {
		return []byte(`{"numStartups": 3, "projects": {
"/p": {"history": [` + more + `], "mcpServers": {"both": {"command": "local"}}, "disabledMcpServers": ["off"]},
"/q": {"mcpServers": {"both": {"command": "elsewhere"}}}},
"mcpServers": {"both": {"command": "user"}, "off": {"command": "o"}, "u": {"command": "u"}}}`)
	}
	history := strings.Repeat(`{"display": "a \"prompt\"", "pastedContents": {"1": [null, 1]}},`, 40_000)
	for _, raw := range [][]byte{text(""), text(history)} {
		d := dialect.Parse("/h/.claude.json", raw, dialect.Options{Project: "/p"})
		require.Empty(t, d.Problems)
		got := []string{}
		for _, s := range d.Servers {
			got = append(got, fmt.Sprint(s.Name, " ", s.Command[0], " ", s.Disabled))
		}
		require.Equal(t, []string{"both local false", "off o true", "u u false"}, got)
	}
	d := dialect.Parse("/h/.claude.json", text(""), dialect.Options{Project: "/elsewhere"})
	require.Equal(t, []string{"user"}, d.Servers[0].Command)
	require.ErrorContains(t, dialect.Parse("/h/other.json", text(history), dialect.Options{}).Problems, "larger than 1024 KiB")
	require.ErrorContains(t, dialect.Parse("/h/.claude.json", text(history+"oops"), dialect.Options{}).Problems, "/h/.claude.json:2: ", "what is passed over is JSON, too")
}

// A list of the allowed that names no tool allows none, as in most products.
func TestAnEmptyListOfTheAllowedAllowsNone(t *testing.T) {
	for _, c := range []struct{ file, text string }{
		{"settings.json", `{"mcpServers": {"x": {"command": "a", "includeTools": []}}}`},
		{"mcp-config.json", `{"mcpServers": {"x": {"command": "a", "tools": []}}}`},
		{"config.toml", "[mcp_servers.x]\ncommand = \"a\"\nenabled_tools = []"},
		{"mcphost.yml", "mcpServers: {x: {command: [a], allowedTools: []}}"},
	} {
		d := dialect.Parse(c.file, []byte(c.text), dialect.Options{})
		require.NoError(t, d.Problems.Err(), c.file)
		require.ErrorContains(t, d.Problems, "an empty list, so no tool is served")
		require.Equal(t, []string{"*"}, d.Servers[0].Tools.Block, c.file)
	}
	for _, text := range []string{"{allow: []}", "[]"} {
		d := dialect.Parse("toolroom.yaml", []byte("servers: {x: {command: a, tools: "+text+"}}"), dialect.Options{})
		require.ErrorContains(t, d.Problems.Err(), "an empty list; leave it out to serve all tools")
	}
	d := dialect.Parse("a.json", []byte(`{"mcpServers": {"x": {"command": "a", "includeTools": null, "tools": ["*"]}}}`), dialect.Options{})
	require.Empty(t, d.Problems)
	require.Empty(t, d.Servers[0].Tools.Block)
}

// Continue has a server's headers below requestOptions.
func TestContinuesRequestOptions(t *testing.T) {
	d := dialect.Parse("config.yaml", []byte(`
name: My assistant
models: [{name: GPT, provider: openai, model: gpt-5}]
mcpServers:
  - name: Linear
    type: streamable-http
    url: https://mcp.linear.app/mcp
    requestOptions: {verifySsl: true, headers: {Authorization: "Bearer SEKRIT"}}
`), dialect.Options{})
	require.Empty(t, d.Problems)
	require.Equal(t, "Bearer SEKRIT", d.Servers[0].Headers["Authorization"].Reveal())
}
