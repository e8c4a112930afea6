package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASessionOverEveryKindOfTool is recorded and played again: of a server
// over HTTP, which is another host, of one over stdio, and of declared tools.
func TestASessionOverEveryKindOfTool(t *testing.T) {
	url, _ := service(t)
	dir := t.TempDir()
	t.Setenv("TOOLROOM_TOKEN", "")
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	upstream := serveProcess(t, "--config", write("upstream.yaml", "tools: {far: {mock_template: '{\"far\":\"{{.x}}\"}'}}"), "--state", filepath.Join(dir, "upstream"))
	t.Setenv("UPSTREAM_TOKEN", upstream.token)
	config := write("toolroom.yaml", fmt.Sprintf(`
servers:
  web: {url: %q, auth_token_env: UPSTREAM_TOKEN}
  fix: {command: fixture, args: [-era, legacy]}
tools:
  near: {mock_template: '{"near":"{{.x}}"}'}
  asks: {http: {url: "%s/item/{id}", method: GET, allow_private: true, headers: {X-Key: sekrit}}}
  other: {mcp: {server: web, tool: far}}
  all: {chain: [{tool: near, args: {x: 1}}, {tool: web__far, args: {x: 2}}]}
  theirs: {client: {}}
`, upstream.url, url))
	said := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
`
	for id, tool := range []string{"near", "web__far", "asks", "other", "all", "theirs", "fix__echo", "gone"} {
		said += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"x":"a","id":"b"}}}`+"\n", id+2, tool)
	}
	host := func(in string, args ...string) (string, error) {
		cmd := exec.Command("mcp-host", append([]string{"--config", config, "--state", filepath.Join(dir, "state")}, args...)...)
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	session := filepath.Join(dir, "session.jsonl")
	out, err := host(said, "record", session)
	require.NoError(t, err, out)
	text, err := os.ReadFile(session)
	require.NoError(t, err)
	for _, want := range []string{`\"far\":\"a\"`, `\"near\":\"a\"`, `\"far\":\"2\"`, `"id":"b"`, `client_tool`, `unknown tool`} {
		require.Contains(t, strings.ReplaceAll(string(text), `\\`, `\`), want)
	}
	require.NotContains(t, string(text), upstream.token)
	out, err = host("", "replay", session)
	require.NoError(t, err, out)
	require.Contains(t, out, "10 answers, 0 differ")
}
