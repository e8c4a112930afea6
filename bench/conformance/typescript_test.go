//go:build oracle

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// visit describes the requests of a TypeScript client at a door; see client.mjs.
type visit struct {
	SDK     int               `json:"sdk"`
	Era     string            `json:"era"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Calls   []call            `json:"calls"`

	door door
}

// visited holds the results of a visit.
type visited struct {
	Failed  string
	Server  struct{ Name, Version string }
	Version string
	Tools   []struct{ Name string }
	Results []answer
}

// TestTypeScriptSDK lists and calls tools with SDK 1 (legacy only, used by most
// clients today) and SDK 2 (both eras). SDK 1 checks each structuredContent against
// the tool's outputSchema and rejects a list with one faulty schema.
func TestTypeScriptSDK(t *testing.T) {
	var visits []visit
	for _, d := range doors(t) {
		for _, era := range []string{legacy, modern} {
			for sdk := 1; sdk <= 2; sdk++ {
				if sdk == 1 && era == modern {
					continue // SDK 1 does not support it
				}
				calls := append(d.calls(t), call{Name: "no_such_tool", Arguments: map[string]any{}})
				visits = append(visits, visit{sdk, era, d.command, d.args, d.url, d.headers(), calls, d})
			}
		}
	}
	input, err := json.Marshal(visits)
	require.NoError(t, err)
	cmd := exec.Command(oracle.Path(t, "node"), filepath.Join(oracle.Dir(), "client.mjs"))
	var out, errors bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errors
	require.NoError(t, cmd.Run(), "stdout: %s\nstderr: %s", out.String(), errors.String())
	var seen []visited
	require.NoError(t, json.Unmarshal(out.Bytes(), &seen), out.String())
	require.Len(t, seen, len(visits))
	for i, v := range visits {
		t.Run(fmt.Sprintf("%s/%s/sdk%d", v.Era, v.door.name, v.SDK), func(t *testing.T) {
			v.check(t, seen[i])
		})
	}
}

func (v visit) check(t *testing.T, seen visited) {
	t.Helper()
	require.Empty(t, seen.Failed)
	require.NotEmpty(t, seen.Server.Name)
	require.NotEmpty(t, seen.Server.Version)
	if v.Era == modern || v.SDK == 2 {
		require.Equal(t, protocolVersions[v.Era], seen.Version)
	}
	var names []string
	for _, tool := range seen.Tools {
		names = append(names, tool.Name)
	}
	require.Subset(t, names, v.door.tools)
	require.Len(t, seen.Results, len(v.Calls))
	for i, c := range v.Calls[:len(v.Calls)-1] {
		c.check(t, seen.Results[i])
	}
	require.EqualValues(t, -32602, seen.Results[len(v.Calls)-1].Code, "an unknown tool is a protocol error")
}
