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

// inspection is one run of the inspector's command line and its output.
type inspection struct {
	Stdout, Stderr, Thrown string
}

// inspect runs the inspector with each of the command lines.
func inspect(t *testing.T, orders [][]string) (runs []inspection) {
	t.Helper()
	input, err := json.Marshal(orders)
	require.NoError(t, err)
	cmd := exec.Command(oracle.Path(t, "node"), filepath.Join(oracle.Dir(), "inspector.mjs"))
	cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir())
	var out, errors bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errors
	require.NoError(t, cmd.Run(), "stdout: %s\nstderr: %s", out.String(), errors.String())
	require.NoError(t, json.Unmarshal(out.Bytes(), &runs), out.String())
	require.Len(t, runs, len(orders))
	return runs
}

// inspection returns the inspector's arguments for an operation at a door.
func (d door) inspection(era string, what ...string) []string {
	line := append([]string{"--format", "json", "--protocol-era", era}, what...)
	if d.url != "" {
		return append(line, "--transport", "http", "--server-url", d.url, "--header", "Authorization: "+d.headers()["Authorization"])
	}
	return append(append(line, "--", d.command), d.args...)
}

// result decodes the inspector's output.
func (i inspection) result(t *testing.T, into any) {
	t.Helper()
	require.Empty(t, i.Thrown, "stdout: %s\nstderr: %s", i.Stdout, i.Stderr)
	var reply struct{ Result json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(i.Stdout), &reply), "stdout is one JSON object: %s", i.Stdout)
	require.NoError(t, json.Unmarshal(reply.Result, into))
}

// TestInspector lists the tools in strict mode, which rejects schemas that models'
// APIs are known to refuse, and calls each tool.
func TestInspector(t *testing.T) {
	type inspected struct {
		door  door
		era   string
		first int // index of its command lines: the list, then the calls
		calls []call
	}
	var visits []inspected
	var orders [][]string
	for _, era := range []string{legacy, modern} {
		for _, d := range doors(t) {
			v := inspected{door: d, era: era, first: len(orders)}
			orders = append(orders, d.inspection(era, "--method", "tools/list", "--strict"))
			for _, c := range d.calls(t) {
				if c.code != "" {
					continue // the inspector reports a tool's error as its exit status
				}
				arguments, err := json.Marshal(c.Arguments)
				require.NoError(t, err)
				orders = append(orders, d.inspection(era, "--method", "tools/call", "--tool-name", c.Name, "--tool-args-json", string(arguments)))
				v.calls = append(v.calls, c)
			}
			visits = append(visits, v)
		}
	}
	runs := inspect(t, orders)
	for _, v := range visits {
		t.Run(v.era+"/"+v.door.name, func(t *testing.T) {
			checkInspected(t, v.door, runs[v.first], v.calls, runs[v.first+1:])
		})
	}
}

// checkInspected checks the list of tools and the answer to each call.
func checkInspected(t *testing.T, d door, listed inspection, calls []call, answers []inspection) {
	t.Helper()
	var list struct {
		Tools []struct {
			Name, Title, Description string
			InputSchema              map[string]any
			Annotations              map[string]any
		}
	}
	listed.result(t, &list)
	require.NotContains(t, listed.Stderr, "warning", "not even a warning about portability")
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
	for i, c := range calls {
		require.True(t, served[c.Name], "%s serves %s", d.name, c.Name)
		var got answer
		answers[i].result(t, &got)
		c.check(t, got)
	}
}
