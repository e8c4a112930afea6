//go:build oracle

package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// startCommands returns the commands of README that install the tools: those of the
// blocks in the section Start, and those in its text.
func startCommands(t *testing.T) (inBlocks, inText []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Start\n")
	require.True(t, found)
	section, _, found = strings.Cut(section, "\n## ")
	require.True(t, found)
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		inBlocks = append(inBlocks, block[1])
	}
	plain := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(section, "")
	for _, code := range regexp.MustCompile("`((?:bin/mcp-host|make) [^`]+)`").FindAllStringSubmatch(plain, -1) {
		inText = append(inText, code[1])
	}
	return inBlocks, inText
}

// notRun are installation commands of README that this test does not run.
var notRun = map[string]string{
	"make dist": "make dist-test runs it, for one platform",
}

// A person pastes the commands of README one after the other: the clone is built, the
// clients have the tools, and uninstall removes them. Only the address of the clone is
// another one: this repository.
func TestReadmeInstalls(t *testing.T) {
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	dir, home, project := t.TempDir(), t.TempDir(), t.TempDir()
	programs := map[string]string{}
	for _, l := range listings() {
		if l.id == "claude-code" || l.id == "codex" {
			programs[l.id] = filepath.Dir(l.command(t)[0])
		}
	}
	env := append(os.Environ(), "HOME="+home, "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "TERM=dumb", "NO_COLOR=1",
		"PATH="+programs["claude-code"]+":"+programs["codex"]+":"+os.Getenv("PATH"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+repository+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/toolroom-mcp/toolroom")
	for _, l := range listings() {
		env = append(env, l.env...)
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // which HOME would move
		out, err := exec.Command("go", "env", name).Output()
		require.NoError(t, err)
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	clone := filepath.Join(dir, "toolroom")
	fill := strings.NewReplacer("BIN", filepath.Join(clone, "bin"), "PROJECT", project)
	run := func(at, commands string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, oracle.Path(t, "bash"), "-ec", fill.Replace(commands))
		cmd.Dir, cmd.Env = at, env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", commands, out)
		return string(out)
	}

	blocks, text := startCommands(t)
	require.Len(t, blocks, 3, "build, Claude Code, Codex")
	out := run(dir, blocks[0])
	require.Contains(t, out, "built bin/mcp-")
	require.Contains(t, out, "README.md", "mcp-host call ls shows the clone")
	require.Contains(t, out, "Claude Code: added toolroom")
	require.Regexp(t, `toolroom: .*Connected`, run(project, "claude mcp list"))
	run(clone, "bin/mcp-host uninstall claude-code")

	ran := 0
	for _, command := range text {
		if why, ok := notRun[command]; ok {
			t.Logf("not run: %s: %s", command, why)
			continue
		}
		require.Contains(t, run(clone, command), "Cursor")
		ran++
	}
	require.Equal(t, 2, ran, "install and uninstall")

	run(project, blocks[1])
	require.Regexp(t, `toolroom: .*Connected`, run(project, "claude mcp list"))
	run(project, blocks[2])
	require.Regexp(t, `toolroom\s+\S*mcp-host\s+stdio --root .*enabled`, run(project, "codex mcp list"))
}
