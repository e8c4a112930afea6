package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A running host took up what was written to a trusted directory at once, and
// started whatever a trusted command led to by then.
func TestARunningHostUsesWhatIsTrusted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	home, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, home)
	}
	t.Chdir(dir)
	ran := filepath.Join(home, "ran")
	tool := func(name, script string) string {
		return fmt.Sprintf("tools: {%s: {description: d, mode: exec, exec: {command: [sh, -c, '%s; echo 1']}}}\n", name, script)
	}
	require.NoError(t, os.Mkdir("tools", 0o700))
	edit(t, "toolroom.yaml", "manifests: [tools]\ntools: {inline: {description: d, mode: exec, exec: {command: [sh, run.sh]}}}\n")
	edit(t, "run.sh", "echo 1\n")
	edit(t, "tools/good.yaml", tool("good", "true"))
	trust := func() {
		out, err := exec.Command("mcp-host", "config", "trust").CombinedOutput()
		require.NoError(t, err, string(out))
	}
	trust()
	p := serveProcess(t)
	call := func(name string) string {
		_, body := p.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, name))
		return body
	}
	require.Contains(t, call("inline"), `"text":"1"`)

	edit(t, "run.sh", "touch "+ran+"; echo 1\n") // no file that is watched
	require.Contains(t, call("inline"), "run.sh has changed since it was trusted")
	require.NoFileExists(t, ran)

	edit(t, "tools/evil.yaml", tool("evil", "touch "+ran))
	p.log.waitFor(t, "evil.yaml did not exist when the configuration was trusted")
	require.Contains(t, call("evil"), "unknown tool")
	require.Contains(t, call("inline"), "unknown tool", "it is left out by now")
	require.Contains(t, call("good"), `"text":"1"`)
	require.NoFileExists(t, ran)

	trust()
	require.Eventually(t, func() bool { return strings.Contains(call("evil"), `"text":"1"`) }, time.Minute, 50*time.Millisecond)
	require.FileExists(t, ran)
}
