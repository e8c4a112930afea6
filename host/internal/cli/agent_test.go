package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/cli"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// mending is what a model says that finds the delay, mends it, and tries that.
const mending = `
answers:
  - when: {message: "delay"}
    text: I look for it.
    calls:
      - {name: grep__grep, args: {pattern: "retryDelay = \\d+"}}
      - {name: view__view, args: {path: delay.sh}}
  - when: {tool: view__view, result: "retryDelay=(\\d+)"}
    text: It is {{1}}.
    calls:
      - {name: edit__edit, args: {file_path: delay.sh, old_string: "retryDelay={{1}}", new_string: "retryDelay=500"}}
      - {name: bash__bash, args: {command: "rm -rf ."}}
  - when: {tool: bash__bash, is_error: true}
    calls: [{name: bash__bash, args: {command: sh test.sh}}]
  - when: {result: "ok: 500"}
    text: The delay was 250 (delay.sh:2) and is 500 now; the test passes.
`

// repository is a small one with its tools, policy and model; it returns the command
// line of a host over it.
func repository(t *testing.T) (dir string, args []string) {
	t.Helper()
	dir = t.TempDir()
	root, state := filepath.Join(dir, "repo"), filepath.Join(dir, "state")
	require.NoError(t, os.Mkdir(root, 0o755))
	servers := ""
	for _, name := range []string{"grep", "view", "edit", "bash"} {
		more := ""
		if name == "bash" {
			more = ", --sandbox, off"
		}
		// In one era, whatever the machine: on a slow one the other may be spoken.
		servers += fmt.Sprintf("  %s: {command: %s, era: modern, args: [--root, %s, --state, %s%s]}\n", name, mcpkittest.Build(t, "./tools/"+name), root, state, more)
	}
	for name, text := range map[string]string{
		"repo/delay.sh": "# how long is waited, in ms\nretryDelay=250\n",
		"repo/test.sh":  ". ./delay.sh\n[ $retryDelay = 500 ] && echo ok: $retryDelay\n",
		"script.yaml":   mending,
		"host.yaml": "servers:\n" + servers + `
models: {default: play, providers: {play: {kind: scripted, file: script.yaml}}}
policy:
  rules:
    - {tool: bash__bash, args: {command: "sh test.sh"}, do: allow}
    - {tool: bash__bash, do: deny}
    - {tool: edit__edit, do: ask}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir, []string{"--config", filepath.Join(dir, "host.yaml"), "--state", state}
}

func hosted(t *testing.T, args []string, more ...string) (status int, out string) {
	t.Helper()
	var stdout bytes.Buffer
	status = cli.Run(context.Background(), append(append([]string{}, args...), more...), strings.NewReader(""), &stdout, t.Output())
	return status, stdout.String()
}

// ended is the last event.
func ended(t *testing.T, out string) (e struct {
	Agent, Why, Text string
	Calls            map[string]int
	Pending          []struct{ ID, Tool string }
	Conversation     json.RawMessage
}) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &e), out)
	return e
}

// work has an agent do all of it, and returns its journal without what is another each
// time.
func work(t *testing.T) string {
	t.Helper()
	dir, args := repository(t)
	status, out := hosted(t, args, "agent", "--json", "--agent", "general", "mend the delay")
	require.Equal(t, 1, status, out)
	first := ended(t, out)
	require.Equal(t, "approval pending", first.Why)
	require.Len(t, first.Pending, 1)
	require.Equal(t, "edit__edit", first.Pending[0].Tool)
	text, err := os.ReadFile(filepath.Join(dir, "repo", "delay.sh"))
	require.NoError(t, err)
	require.Contains(t, string(text), "retryDelay=250", "nothing is changed before somebody said so")
	status, out = hosted(t, args, "approvals", "approve", first.Pending[0].ID)
	require.Zero(t, status, out)

	status, out = hosted(t, args, "agent", "--json", "--resume", first.Agent)
	require.Zero(t, status, out)
	last := ended(t, out)
	require.Equal(t, "goal reached", last.Why)
	require.Equal(t, "The delay was 250 (delay.sh:2) and is 500 now; the test passes.", last.Text)
	text, err = os.ReadFile(filepath.Join(dir, "repo", "delay.sh"))
	require.NoError(t, err)
	require.Contains(t, string(text), "retryDelay=500")
	require.DirExists(t, filepath.Join(dir, "repo"))

	state := args[3]
	a, err := core.Open(config.Config{State: state, Store: backend.Config{Dir: state}})
	require.NoError(t, err)
	defer a.Close()
	j, err := a.Journal(first.Agent)
	require.NoError(t, err)
	entries, err := j.Read(t.Context())
	require.NoError(t, err)
	changes := regexp.MustCompile(`,"ms":\d+|"input":\d+|\{"Name":"duration_ms","Value":\d+\}|duration_ms"?: ?\d+|\d+(\.\d+)? ?m?s\b|` + regexp.QuoteMeta(first.Pending[0].ID) + `|\d\d:\d\d:\d\dZ|"(expires_at|created)":"[^"]+"|sha256-[^"]+|[0-9a-f]{16,}`)
	var results, lines []string
	for _, entry := range entries {
		line := strings.ReplaceAll(changes.ReplaceAllString(string(entry), ""), dir, "")
		if strings.HasPrefix(line, `{"step":"result"`) { // of a turn, they come as they are ready
			results = append(results, line)
			continue
		}
		if len(results) > 0 && !strings.HasPrefix(line, `{"step":"call"`) {
			lines, results = append(lines, sorted(results)...), nil
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// An agent finds a fact with grep and view, changes a file once that is approved, and
// runs the tests, over the real binaries; what it was asked and did is the same each
// time.
func TestAnAgentMendsARepository(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("mcp-bash runs on Linux only, as yet")
	}
	require.Equal(t, work(t), work(t))
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

// An agent that is resumed has no tool that it had not, whatever kind it is now said to
// be; and only one process works on it.
func TestAnAgentIsResumedAsWhatItWas(t *testing.T) {
	_, args := repository(t)
	_, out := hosted(t, args, "agent", "--json", "hello")
	first := ended(t, out)
	status, out := hosted(t, args, "agent", "--json", "--agent", "general", "--resume", first.Agent, "mend the delay")
	require.NotZero(t, status)
	require.Contains(t, out, "no tool \\\"view__view\\\"")
	require.NotContains(t, out, "retryDelay=250")

	state := args[3]
	a, err := core.Open(config.Config{State: state, Store: backend.Config{Dir: state}})
	require.NoError(t, err)
	defer a.Close()
	release, err := a.ClaimAgent(t.Context(), first.Agent)
	require.NoError(t, err)
	var said bytes.Buffer
	status = cli.Run(t.Context(), append(args, "agent", "--resume", first.Agent, "go on"), strings.NewReader(""), &said, &said)
	require.Equal(t, 1, status)
	require.Contains(t, said.String(), "another process runs agent "+first.Agent)
	release()
	_, out = hosted(t, args, "agent", "--json", "--resume", first.Agent, "go on")
	require.Equal(t, first.Agent, ended(t, out).Agent)
}

// An agent whose host is gone says so, and asks no model what it would find.
func TestAnAgentWithoutItsHost(t *testing.T) {
	dir, args := repository(t)
	var out bytes.Buffer
	task := `{"prompt":"mend the delay","agent":"general","host":{"socket":"` + filepath.ToSlash(filepath.Join(dir, "state", "hosts", "1-a.sock")) + `","token":"x"}}`
	status := cli.Run(t.Context(), append(args, "agent", "--json"), strings.NewReader(task), &out, t.Output())
	require.NotZero(t, status)
	require.Equal(t, "model error", ended(t, out.String()).Why)
	require.NotContains(t, out.String(), `"type":"turn"`)
}
