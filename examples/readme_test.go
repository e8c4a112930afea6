package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// answers are parts of what the commands of README print. The policy refuses
// its call.
var answers = map[string]string{
	"wordcount/main.go":          "words",
	"manifests/population.yaml":  "126000",
	"manifests/forecast.yaml":    "", // needs a service; the script examples.txtar runs it
	"policy.yaml":                "denies this call",
	"claude_desktop_config.json": "toolroom__population",
}

// Each command in the column "try it" of README works in the root of the
// repository, with the programs in the PATH.
func TestReadmeCommandsWork(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a Unix shell")
	}
	bin, state := t.TempDir(), t.TempDir()
	for name, source := range map[string]string{"mcp-host": "./host", "mcp-wordcount": "./examples/wordcount"} {
		mcpkittest.CopyProgram(t, mcpkittest.Build(t, source), filepath.Join(bin, name))
	}
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| \\[([^\\]]+)\\].* \\| (?:the same with )?`([^`]+)`[^|]* \\|$").FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, len(answers))
	for _, row := range rows {
		require.Contains(t, answers, row[1])
		if regexp.MustCompile("^call forecast ").MatchString(row[2]) {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", row[2])
		cmd.Dir = ".."
		cmd.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
			"XDG_CONFIG_HOME="+state, "MCP_STATE_DIR="+state, "FORECAST_URL=http://127.0.0.1:9", "FORECAST_KEY=none")
		out, err := cmd.CombinedOutput()
		require.Contains(t, string(out), answers[row[1]], "%s", row[2])
		require.Equal(t, row[1] == "policy.yaml", err != nil, "%s\n%s", row[2], out)
	}
}
