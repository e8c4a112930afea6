//go:build oracle

package conformance

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// inspect runs the inspector's command line on a door and decodes its result.
func inspect(t *testing.T, d door, era string, into any, args ...string) (stderr string) {
	t.Helper()
	line := []string{
		filepath.Join(oracle.Module(t, "@modelcontextprotocol/inspector"), "clients", "launcher", "build", "index.js"),
		"--cli", "--format", "json", "--protocol-era", era,
	}
	line = append(line, args...)
	if d.url != "" {
		line = append(line, "--transport", "http", "--server-url", d.url, "--header", "Authorization: "+d.headers()["Authorization"])
	} else {
		line = append(append(line, "--", d.command), d.args...)
	}
	cmd := exec.Command(oracle.Path(t, "node"), line...)
	cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir())
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	require.NoError(t, cmd.Run(), "%s\nstdout: %s\nstderr: %s", cmd, out.String(), errors.String())
	var reply struct{ Result json.RawMessage }
	require.NoError(t, json.Unmarshal(out.Bytes(), &reply), "stdout is one JSON object: %s", out.String())
	require.NoError(t, json.Unmarshal(reply.Result, into))
	return errors.String()
}

// TestInspector lists tools in strict mode, which fails on any schema that a
// model's API is known to refuse, then calls each.
func TestInspector(t *testing.T) {
	eachDoor(t, func(t *testing.T, d door, era string) {
		var list struct {
			Tools []struct {
				Name, Title, Description string
				InputSchema              map[string]any
				Annotations              map[string]any
			}
		}
		stderr := inspect(t, d, era, &list, "--method", "tools/list", "--strict")
		require.NotContains(t, stderr, "warning", "not even a warning about portability")
		served := map[string]bool{}
		for _, tool := range list.Tools {
			served[tool.Name] = true
			require.NotEmpty(t, tool.Title, tool.Name)
			require.NotEmpty(t, tool.Description, tool.Name)
			require.Equal(t, "object", tool.InputSchema["type"])
			for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
				require.Contains(t, tool.Annotations, hint, tool.Name)
			}
		}
		for _, c := range d.calls(t) {
			require.True(t, served[c.Name], "%s serves %s", d.name, c.Name)
			if c.code != "" {
				continue // the command line turns a tool's error into an exit status
			}
			arguments, err := json.Marshal(c.Arguments)
			require.NoError(t, err)
			var got answer
			inspect(t, d, era, &got, "--method", "tools/call", "--tool-name", c.Name, "--tool-args-json", string(arguments))
			c.check(t, got)
		}
	})
}
