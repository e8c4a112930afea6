package dialect_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
)

// problems are those of a document, a line each.
func problems(file, text string) string {
	var lines []string
	for _, p := range dialect.Parse(file, []byte(text), dialect.Options{}).Problems {
		if p.Warning {
			lines = append(lines, "warning: "+p.String())
			continue
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

func TestProblemsSayWhereAndWhat(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		// Fields.
		{"toolroom.yaml", "servers:\n  x:\n    comand: a", "toolroom.yaml:3: server x: comand: unknown; did you mean command?\ntoolroom.yaml:2: server x: command is missing (or url, for a server over HTTP)"},
		{"toolroom.yaml", "servers:\n  x: {command: a, zzz: 1}", "toolroom.yaml:2: server x: zzz: unknown"},
		{"a.json", "{\"mcpServers\": {\n\"x\": {\"command\": \"a\",\n\"zzz\": 1}}}", "warning: a.json:3: server x: zzz: unknown; ignored"},
		{"a.json", "{\"mcpServers\": {\"x\": {\"command\": \"a\",\n\"arg\": []}}}", "a.json:2: server x: arg: unknown; did you mean args?"},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "args": "b"}}}`, "a.json:1: server x: args: want a list of strings, not a string"},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "args": [["b"]]}}}`, "a.json:1: server x: args: want a list of strings; it contains a list"},
		{"a.json", `{"mcpServers": {"x": {"command": {"a": 1}}}}`, "a.json:1: server x: command: want a string, not a map\na.json:1: server x: command is missing (or url, for a server over HTTP)"},
		{"a.json", "{\"mcpServers\": {\"x\": {\"command\": \"a\", \"env\": {\n\"K\": [1]}}}}", "a.json:2: server x: env: K: want a string, not a list"},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "env": "K=v"}}}`, "a.json:1: server x: env: want a map of strings, not a string"},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "env": ["K"]}}}`, "a.json:1: server x: env: want a map, or a list of NAME=value"},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "enabled": "yes"}}}`, "a.json:1: server x: enabled: want true or false, not a string"},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "api_key": "k", "apiKey": "k"}}}`, "a.json:1: server x: apiKey: has the same meaning as api_key; leave one out\nwarning: a.json:1: server x: headers and keys apply only to servers with a url; ignored"},
		{"a.json", `{"mcpServers": {"x": {"args": ["a"]}}}`, "a.json:1: server x: command is missing"},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "url": "http://h"}}}`, "a.json:1: server x: has both command and url; give only one"},
		{"a.json", `{"mcpServers": {"x": {"url": "http://h", "api_key": "a", "auth_token_env": "B"}}}`, "a.json:1: server x: has both api_key and auth_token_env; leave one out"},
		{"a.json", `{"mcpServers": {"x": "npx"}}`, "a.json:1: server x: want a map with command or url, not a string"},
		// Transports.
		{"a.json", `{"mcpServers": {"x": {"url": "wss://h", "type": "ws"}}}`, "a.json:1: server x: type: WebSocket is not a transport of MCP; use streamable-http and the server's http(s) address"},
		{"a.json", `{"mcpServers": {"x": {"url": "http://h", "type": "htp"}}}`, "a.json:1: server x: type: not a transport; use stdio, streamable-http or sse"},
		{"a.json", `{"mcpServers": {"x": {"url": "http://h", "type": "stdoi"}}}`, "a.json:1: server x: type: not a transport; use stdio, streamable-http or sse; did you mean stdio?"},
		{"a.json", `{"mcpServers": {"x": {"url": "http://h", "type": "stdio"}}}`, "a.json:1: server x: transport stdio needs a command, not a url"},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "type": "sse"}}}`, "a.json:1: server x: transport sse needs a url, not a command"},
		// Durations, choices, numbers.
		{"toolroom.yaml", "servers: {x: {command: a, timeout: 30}}", "toolroom.yaml:1: server x: timeout: a number without a unit; want a duration like 10s"},
		{"toolroom.yaml", "servers: {x: {command: a, timeout: soon}}", "toolroom.yaml:1: server x: timeout: want a duration like 10s"},
		{"toolroom.yaml", "servers: {x: {command: a, timeout_ms: -1}}", "toolroom.yaml:1: server x: timeout_ms: want a duration above 0"},
		{"toolroom.yaml", "servers: {x: {command: a, timeout_ms: .nan}}", "toolroom.yaml:1: server x: timeout_ms: want a duration like 10s"},
		{"toolroom.yaml", "servers: {x: {command: a, timeout_ms: 1e300}}", "toolroom.yaml:1: server x: timeout_ms: want a duration above 0"},
		{"toolroom.yaml", "servers: {x: {command: a, max_concurrent: 0}}", "toolroom.yaml:1: server x: max_concurrent: want a whole number above 0"},
		{"toolroom.yaml", "servers: {x: {command: a, scope: sesion}}", "toolroom.yaml:1: server x: scope: want one of shared, session, call; did you mean session?"},
		{"toolroom.yaml", "servers: {x: {command: a, tools: {alow: [b]}}}", "toolroom.yaml:1: server x: tools.alow: unknown; use allow, block, rename and describe; did you mean allow?"},
		// Names and places.
		{"toolroom.yaml", "servers:\n  x: {command: a}\nmcpServers:\n  x: {command: a}", "toolroom.yaml:4: server x: appears twice, also on line 2; rename one"},
		{"toolroom.yaml", "servers:\n  x: {command: a}\n  x: {command: a}", "toolroom.yaml:3: x appears twice"},
		{"a.json", "{\"mcpServers\": {\n\"x\": {\"command\": \"a\"},\n\"x\": {\"command\": \"a\"}}}", "a.json:3: x appears twice"},
		{"a.json", `{"mcpServers": [{"command": "a"}]}`, "a.json:1: a server has no name; give it an id or a name"},
		{"toolroom.yaml", "server: {x: {command: a}}", "toolroom.yaml:1: server is unknown here; servers belong under servers; did you mean servers?"},
		{"a.json", `{"mcpServer": {"x": {"command": "a"}}}`, "a.json:1: mcpServer is unknown here; did you mean mcpServers?"},
		{"a.json", `{"mcp-servers": {"x": {"command": "a"}}}`, "a.json:1: mcp-servers is unknown here; did you mean mcpServers?"},
		{"a.json", `{"editor.tabSize": 4}`, "a.json: has no servers: they belong under servers or mcpServers, found editor.tabSize"},
		{"a.json", `{"mcpServers": 3}`, "a.json:1: mcpServers: want a map or a list of servers, not a number"},
		{"a.json", `[]`, "a.json:1: want a map, such as mcpServers: {…}, not a list"},
		{"a.json", `{"servers": {}, "inputs": {}}`, "a.json:1: inputs: want a list, not a map"},
		{"a.yml", "arsenal: {default_timeout_second: 3, mcp_servers: []}", "a.yml:1: arsenal.default_timeout_second: unknown; did you mean default_timeout_seconds?"},
		// Syntax, which never shows what is there.
		{"a.json", "{\"mcpServers\": {\n\"x\": {\"env\": {\"K\": SEKRIT}}}}", "a.json:2: a value is neither in quotes nor a number, true, false or null"},
		{"a.json", "{\"mcpServers\": {\n\"x\": {\"command\": \"SEKRIT\" \"args\": []}}}", "a.json:2: a comma is missing, on this line or the one before"},
		{"a.json", "{\"command\": \"C:\\SEKRIT\"}", "a.json:1: a string has a bad escape or character; write \\\\ for a backslash"},
		{"a.json", "{\"a\": \"SEKRIT", "a.json:1: unclosed string"},
		{"a.json", "{\"a\": \"SEKRIT\n\"}", "a.json:1: unclosed string on this line"},
		{"a.json", "{\"a\" 1}", "a.json:1: a colon is missing after a name"},
		{"a.json", "{SEKRIT: 1}", "a.json:1: a name in double quotes is missing here"},
		{"a.json", "{} SEKRIT", "a.json:1: text after the end of the JSON value"},
		{"a.json", "{\"a\": 1", "a.json:1: unclosed object"},
		{"a.json", "{\"a\": ", "a.json:1: the JSON ends before it is complete"},
		{"a.json", "{ /* SEKRIT", "a.json:1: unclosed comment"},
		{"a.yaml", "a: [SEKRIT", "a.yaml:1: not YAML: did not find expected ',' or ']'"},
		{"a.yaml", "a: *SEKRIT", "a.yaml: not YAML: unknown anchor … referenced"},
		{"a.yaml", "a: b\n c: SEKRIT", "a.yaml:2: not YAML: mapping values are not allowed in this context"},
		{"a.yaml", "a: 1\n---\nb: 2", "a.yaml:2: a second YAML document; a configuration has only one"},
		{"a.toml", "a = 1\nb = SEKRIT", "a.toml:2: not TOML: expected value but found … instead"},
		{"a.toml", "[a]\nb = 1\n[a]", "a.toml:3: not TOML: Key … has already been defined."},
		{"a.json", "\xff\xfe{\x00}\x00", "a.json: not UTF-8 text; save it as UTF-8"},
		{"a.json", strings.Repeat(" ", 1<<20) + "{}", "a.json: larger than 1024 KiB, the limit for a configuration"},
		{"a.json", strings.Repeat("[", 1000), "a.json:1: too large or nested too deep for a configuration"},
		{"a.yaml", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "a.yaml:1: too large or nested too deep for a configuration"},
		{"a.toml", "a = " + strings.Repeat("[", 100000), "a.toml: nested too deep for a configuration"},
		{"a.yaml", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]", "a.yaml:1: too large or nested too deep for a configuration"},
	} {
		require.Equal(t, c.want, problems(c.file, c.text), "%.200s", c.text)
	}
}

func TestWhatIsNoProblem(t *testing.T) {
	for _, c := range []struct{ file, text string }{
		{"toolroom.yaml", ""},
		{"toolroom.yaml", "# nothing yet\n"},
		{"toolroom.yaml", "servers:"},
		{"toolroom.toml", ""},
		{"a.json", ""},
		{"a.json", "\ufeff{\"mcpServers\": {}}"},
		{"noext", "\t{\"mcpServers\": {\"a\": {\"command\": \"b\"}}}"},
		{"noext", "mcpServers:\n  a: {command: b}"},
		{"noext", "[mcp_servers.a]\ncommand = \"b\""},
		{"config.yaml", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"b\"}, // tabs and comments\n\t},\n}"},
		{"mcp.json", `{"a": {"command": "b"}, "c": {"url": "http://d"}}`},
		{"toolroom.json", `{"$schema": "toolroom.schema.json", "servers": {}}`},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "disabled": false, "alwaysAllow": ["b"], "timeout": null, "env": null}}}`},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "tools": ["*"], "env": [{"name": "K", "value": "v"}]}}}`},
		{"a.toml", "[mcp_servers.x]\ncommand = \"a\"\n[mcp_servers.x.tools.search]\napproval_mode = \"approve\""},
		{"a.toml", "[[mcp_servers]]\nname = \"x\"\ncommand = \"a\"\n[[mcp_servers]]\nname = \"y\"\ncommand = \"b\""},
	} {
		require.Empty(t, problems(c.file, c.text), c.text)
	}
}

func TestLinesOfTOML(t *testing.T) {
	d := dialect.Parse("config.toml", []byte("x = 1\n[mcp_servers.\"a b\"]\ncommand = \"c\"\n\n[mcp_servers.d]\ncommand = \"e\"\narg = []\n[mcp_servers.d.env]\nK = [1]\n"), dialect.Options{})
	require.Equal(t, 2, d.Servers[0].Line)
	require.Equal(t, 5, d.Servers[1].Line)
	require.Equal(t, "config.toml:7: server d: arg: unknown; did you mean args?\nconfig.toml:9: server d: env: K: want a string, not a list", d.Problems.Error())
}

func TestProblemsAreBounded(t *testing.T) {
	d := dialect.Parse("toolroom.yaml", []byte("servers: {x: {command: a, "+strings.Repeat("z", 300)+": 1}}"), dialect.Options{})
	require.Less(t, len(d.Problems.Error()), 200)
	var text strings.Builder
	for i := range 100 {
		text.WriteString(strings.Repeat("z", i+1) + ": 1\n")
	}
	require.Contains(t, problems("toolroom.yaml", text.String()), "z is unknown here")
	require.Contains(t, dialect.Parse("toolroom.yaml", []byte(text.String()), dialect.Options{}).Problems.Error(), "and 80 more")
	require.Contains(t, problems("toolroom.yaml", "\"a\\e[2Jb\": 1"), `"a\u001b[2Jb" is unknown`, "a terminal is not steered")
}

// A field that confines a server, or has its calls confirmed, in another
// product is never left out in silence; one that permits something may be.
func TestRestrictionsAreSaid(t *testing.T) {
	for _, c := range []struct{ file, text, field string }{
		{"mcp.json", `{"servers": {"x": {"command": "a", "sandbox": "${input:s}"}}}`, "sandbox"},
		{"settings.json", `{"mcpServers": {"x": {"command": "a", "trust": false}}}`, "trust"},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "permissions": {"network": false}}}}`, "permissions"},
		{"a.json", `{"mcpServers": {"x": {"command": "a", "readOnly": true}}}`, "readOnly"},
		{"config.toml", "[mcp_servers.x]\ncommand = \"a\"\ndefault_tools_approval_mode = \"prompt\"", "default_tools_approval_mode"},
		{"config.toml", "[mcp_servers.x]\ncommand = \"a\"\n[mcp_servers.x.tools.rm]\napproval_mode = \"prompt\"", "tools.rm.approval_mode"},
		{"config.toml", "[mcp_servers.x]\ncommand = \"a\"\nexperimental_environment = \"remote\"", "experimental_environment"},
	} {
		d := dialect.Parse(c.file, []byte(c.text), dialect.Options{})
		require.NoError(t, d.Problems.Err(), c.text)
		require.Len(t, d.Servers, 1)
		require.Len(t, d.Problems.Warnings(), 1, c.text)
		require.Contains(t, d.Problems.Warnings()[0].String(), "server x: "+c.field+": ", c.text)
	}
	for _, text := range []string{
		`{"mcpServers": {"x": {"command": "a", "sandboxEnabled": false, "sandbox": null, "trust": true, "defaultToolsApprovalMode": "auto", "alwaysAllow": ["b"], "autoApprove": []}}}`,
	} {
		require.Empty(t, problems("a.json", text), text)
		require.Empty(t, dialect.Parse("a.json", []byte(text), dialect.Options{}).Problems, text)
	}
	for _, text := range []string{
		`{"servers": {"x": {"command": "a"}}, "sandbox": {"filesystem": {"denyRead": ["~"]}}}`,
		`{"mcp": {"x": {"type": "local", "command": ["a"]}}, "permission": {"x_*": "ask"}}`,
	} {
		d := dialect.Parse("mcp.json", []byte(text), dialect.Options{})
		require.NoError(t, d.Problems.Err())
		require.Len(t, d.Problems.Warnings(), 1, text)
		require.Contains(t, d.Problems.Warnings()[0].Text, "has no effect on the servers")
	}
}
