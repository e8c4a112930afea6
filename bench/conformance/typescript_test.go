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

// TestTypeScriptSDK lists and calls with SDK 1 (legacy only; most clients of
// today) and SDK 2 (both eras). SDK 1 checks each structuredContent against
// the tool's outputSchema and refuses a list with one faulty schema.
func TestTypeScriptSDK(t *testing.T) {
	eachDoor(t, func(t *testing.T, d door, era string) {
		for sdk := 1; sdk <= 2; sdk++ {
			if sdk == 1 && era == modern {
				continue // SDK 1 does not speak it
			}
			t.Run(fmt.Sprintf("sdk%d", sdk), func(t *testing.T) { typescript(t, d, era, sdk) })
		}
	})
}

func typescript(t *testing.T, d door, era string, sdk int) {
	calls := append(d.calls(t), call{Name: "no_such_tool", Arguments: map[string]any{}})
	order, err := json.Marshal(map[string]any{
		"sdk": sdk, "era": era, "command": d.command, "args": d.args, "url": d.url, "headers": d.headers(), "calls": calls,
	})
	require.NoError(t, err)
	cmd := exec.Command(oracle.Path(t, "node"), filepath.Join(oracle.Dir(), "client.mjs"), string(order))
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	require.NoError(t, cmd.Run(), "stdout: %s\nstderr: %s", out.String(), errors.String())
	var seen struct {
		Server  struct{ Name, Version string }
		Version string
		Tools   []struct{ Name string }
		Results []answer
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &seen), out.String())
	require.NotEmpty(t, seen.Server.Name)
	require.NotEmpty(t, seen.Server.Version)
	if era == modern || sdk == 2 {
		require.Equal(t, protocolVersions[era], seen.Version)
	}
	var names []string
	for _, tool := range seen.Tools {
		names = append(names, tool.Name)
	}
	require.Subset(t, names, d.tools)
	require.Len(t, seen.Results, len(calls))
	for i, c := range calls[:len(calls)-1] {
		c.check(t, seen.Results[i])
	}
	require.EqualValues(t, -32602, seen.Results[len(calls)-1].Code, "an unknown tool is a protocol error")
}
