package examples_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// A program of the user's own next to the host is not started because it is
// there; tool_dirs serves it, and the host does not start itself with it.
func TestAToolOfOnesOwnNextToTheHost(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755)) //nolint:gosec // programs
	for name, source := range map[string]string{"mcp-host": "./host", "mcp-ls": "./tools/ls", "mcp-wordcount": "./examples/wordcount"} {
		mcpkittest.CopyProgram(t, mcpkittest.Build(t, source), filepath.Join(bin, name))
	}
	run := func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(bin, "mcp-host"), append([]string{"--state", filepath.Join(dir, "state"), "--root", dir}, args...)...)
		cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		cmd.Stderr = t.Output()
		out, err := cmd.Output()
		return string(out), err
	}
	help, err := run("--help")
	require.NoError(t, err)
	require.Contains(t, help, "tool_dirs: [DIR]")

	out, err := run("tools")
	require.NoError(t, err)
	require.Contains(t, out, "ls ")
	require.NotContains(t, out, "wordcount")
	out, err = run("doctor")
	require.NoError(t, err, out)
	require.Contains(t, out, "not served: mcp-wordcount\n      to serve them, add to toolroom.yaml: tool_dirs: [")

	// What doctor says, as it says it.
	where, err := json.Marshal(bin)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".config", "toolroom"), 0o755)) //nolint:gosec // a test's
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".config", "toolroom", "toolroom.yaml"), []byte("tool_dirs: ["+string(where)+"]\n"), 0o600))
	out, err = run("call", "wordcount__wordcount", "text=one two three")
	require.NoError(t, err)
	require.Equal(t, "3 words\n", out)
	out, err = run("servers")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^ls +configured`, out)
	require.NotContains(t, out, "mcp-host ")
	out, err = run("doctor")
	require.NoError(t, err, out)
	require.NotContains(t, out, "not served")
}

// dispatch_agent is served by a host that can find a model, and by itself.
func TestAgentsNeedAModel(t *testing.T) {
	dir := t.TempDir()
	for name, source := range map[string]string{"mcp-host": "./host", "mcp-dispatch_agent": "./tools/dispatch_agent"} {
		mcpkittest.CopyProgram(t, mcpkittest.Build(t, source), filepath.Join(dir, name))
	}
	run := func(env []string, name string, args ...string) string {
		cmd := exec.Command(filepath.Join(dir, name), args...)
		cmd.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, env...)
		cmd.Stderr, cmd.Dir = t.Output(), dir
		out, err := cmd.Output()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Contains(t, run(nil, "mcp-dispatch_agent", "--schema"), `"name": "dispatch_agent"`)
	key := []string{"OPENAI_API_KEY=sk-a-key-for-tests"}
	require.Contains(t, run(key, "mcp-host", "tools"), "dispatch_agent")
	require.NotContains(t, run(key, "mcp-host", "servers"), "not served")
	if out := run(nil, "mcp-host", "tools"); strings.Contains(out, "dispatch_agent") {
		t.Skip("a model answers on this machine")
	}
	require.Contains(t, run(nil, "mcp-host", "servers"), "its tools are not served: no model is configured")
	require.Contains(t, run(nil, "mcp-host", "doctor"), "its tools are not served: no model is configured")
}
