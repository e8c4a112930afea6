package dialect_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"go.yaml.in/yaml/v3"
)

func TestSandboxIsRead(t *testing.T) {
	for _, c := range []struct {
		file, text string
		want       dialect.Sandbox
	}{
		{"toolroom.yaml", "servers: {x: {command: a}}", dialect.Sandbox{}},
		{"toolroom.yaml", "servers: {x: {command: a, sandbox: off}}", dialect.Sandbox{}},
		{"toolroom.yaml", "servers: {x: {command: a, sandbox: false}}", dialect.Sandbox{}},
		{"toolroom.yaml", "servers: {x: {command: a, sandbox: default}}", dialect.Sandbox{On: true}},
		{"toolroom.yaml", "servers: {x: {command: a, sandbox: true}}", dialect.Sandbox{On: true}},
		{"toolroom.yaml", "servers: {x: {command: a, sandbox: {}}}", dialect.Sandbox{On: true}},
		{"toolroom.yaml", "servers: {x: {command: a, sandbox: {level: L1, write: [w], read: [r, s], network: off, env: [E], sockets: [/s], memory: 2GiB, file_size: 1MiB, cpu_percent: 150, processes: 7, open_files: 8}}}",
			dialect.Sandbox{On: true, Level: "L1", Write: []string{"w"}, Read: []string{"r", "s"}, Network: "off", Env: []string{"E"}, Sockets: []string{"/s"}, Memory: 2 << 30, FileSize: 1 << 20, CPU: 150, Processes: 7, OpenFiles: 8}},
		{"toolroom.yaml", "servers: {x: {command: a, sandbox: {network: [a.example, 'b.example:8443']}}}", dialect.Sandbox{On: true, Network: "allow=a.example,b.example:8443"}},
		{"toolroom.yaml", "servers: {x: {command: a, sandbox: {network: []}}}", dialect.Sandbox{On: true, Network: "off"}},
		{"toolroom.yaml", "servers: {x: {command: a, sandbox: {network: on}}}", dialect.Sandbox{On: true, Network: "on"}},
		{"toolroom.yaml", "servers: {x: {command: a, sandbox: {network: registries}}}", dialect.Sandbox{On: true, Network: "registries"}},
		{"mcp.json", `{"servers": {"x": {"command": "a", "sandboxEnabled": true}}}`, dialect.Sandbox{On: true}},
		{"mcp.json", `{"servers": {"x": {"command": "a", "sandboxEnabled": false}}}`, dialect.Sandbox{}},
		{"mcp.json", `{"servers": {"x": {"command": "a", "sandboxEnabled": true, "sandbox": {"filesystem": {"allowWrite": ["w"], "denyRead": ["~"]}, "network": {"allowedDomains": ["b"], "deniedDomains": ["c"]}}}}}`,
			dialect.Sandbox{On: true, Write: []string{"w"}, Network: "allow=b"}},
		{"mcp.json", `{"servers": {"x": {"command": "a", "sandboxEnabled": true}}, "sandbox": {"network": {"allowedDomains": ["b"]}}}`, dialect.Sandbox{On: true, Network: "allow=b"}},
		{"settings.json", `{"mcp": {"servers": {"x": {"command": "a", "sandbox_enabled": true}}}}`, dialect.Sandbox{On: true}},
		{"opencode.json", `{"mcp": {"x": {"type": "local", "command": ["a"], "sandbox": true}}}`, dialect.Sandbox{On: true}},
		{"config.toml", "[mcp_servers.x]\ncommand = \"a\"\nsandbox = \"danger-full-access\"", dialect.Sandbox{}},
	} {
		d := dialect.Parse(c.file, []byte(c.text), dialect.Options{})
		require.Empty(t, d.Problems, c.text)
		require.Equal(t, c.want, d.Servers[0].Sandbox, c.text)
		if c.file == "toolroom.yaml" {
			again, err := yaml.Marshal(map[string]any{"servers": map[string]any{"x": d.Servers[0].Encode(nil, true)}})
			require.NoError(t, err)
			require.Equal(t, c.want, dialect.Parse("toolroom.yaml", again, dialect.Options{}).Servers[0].Sandbox, "%s", again)
		}
	}
}

func TestSandboxFaults(t *testing.T) {
	for _, c := range []struct{ sandbox, want string }{
		{"strict", "want default, off, or a map of settings"},
		{"{level: L3}", "sandbox.level: "},
		{"{write: dir}", "want a list of strings"},
		{"{network: some}", "sandbox.network: "},
		{"{memory: much}", "want a size"},
		{"{processes: 0}", "want a whole number above 0"},
		{"{writes: [a]}", "write"},
	} {
		require.Contains(t, problems("toolroom.yaml", "servers: {x: {command: a, sandbox: "+c.sandbox+"}}"), c.want, c.sandbox)
	}
	d := dialect.Parse("mcp.json", []byte(`{"servers": {"x": {"command": "a", "sandbox": {"filesystem": {"allowWrite": ["/w"], "denyWrite": ["/w/sub"]}}}}}`), dialect.Options{})
	require.NoError(t, d.Problems.Err())
	require.Contains(t, d.Problems.Warnings()[0].String(), "has no effect for /w/sub, because it is in an allowed directory")
}
