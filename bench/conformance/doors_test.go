//go:build oracle

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

const (
	legacy = "legacy"
	modern = "modern"

	token = "conformance-tests-own-token-0123456789"
)

// protocolVersions holds the protocol version that a client of each era uses.
var protocolVersions = map[string]string{legacy: "2025-11-25", modern: "2026-07-28"}

// patient holds the settings of servers behind the host: their tools keep their names,
// and they have enough time to start on a busy machine.
var patient = map[string]any{"prefix": "", "start_timeout": "2m", "timeout": "2m"}

// door is one server of this repository: a binary over stdio, or the host over HTTP.
type door struct {
	name    string
	command string   // stdio
	args    []string // stdio
	url     string   // streamable HTTP
	tools   []string // tools that it must serve; it may serve more
}

func (d door) headers() map[string]string {
	if d.url == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + token}
}

// call is one tool call and its expected answer.
type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`

	text string // a part of the text
	code string // _meta["toolroom/code"] of a tool error
}

// callsOf returns calls for a tool. It fails for an unknown tool, so a new tool needs
// calls here.
func callsOf(t *testing.T, tool string) []call {
	calls := map[string][]call{
		"ls": {
			{Name: "ls", Arguments: map[string]any{"path": "."}, text: "notes.txt"},
			{Name: "ls", Arguments: map[string]any{"path": "missing"}, code: "NOT_FOUND"},
		},
		"glob": {
			{Name: "glob", Arguments: map[string]any{"pattern": "**/*.go"}, text: "src/main.go"},
			{Name: "glob", Arguments: map[string]any{}, code: "MISSING_PARAMETER"},
		},
		"grep": {
			{Name: "grep", Arguments: map[string]any{"pattern": "func main", "type": "go"}, text: "src/main.go\n  1- package main"},
			{Name: "grep", Arguments: map[string]any{"pattern": "("}, code: "BAD_PATTERN"},
		},
		"view": {
			{Name: "view", Arguments: map[string]any{"file_path": "notes.txt"}, text: "\tsecond line"},
			{Name: "view", Arguments: map[string]any{"file_path": "../escape"}, code: "OUTSIDE_ROOT"},
		},
		"edit": {
			{Name: "edit", Arguments: map[string]any{"file_path": "notes.txt", "old_string": "second", "new_string": "2nd", "dry_run": true}, text: "+2nd line"},
			{Name: "edit", Arguments: map[string]any{"file_path": "notes.txt", "old_string": "third", "new_string": "3rd"}, code: "NO_MATCH"},
		},
		"bash": {
			{Name: "bash", Arguments: map[string]any{"command": "cat notes.txt | tail -1"}, text: "second line\nexit 0"},
			{Name: "bash", Arguments: map[string]any{"command": "sudo true"}, code: "COMMAND_DENIED"},
			{Name: "bash_job", Arguments: map[string]any{"action": "poll", "job_id": "none"}, code: "JOB_NOT_FOUND"},
		},
		"dispatch_agent": { // only the error without a model
			{Name: "dispatch_agent", Arguments: map[string]any{"agent_id": "none"}, code: "JOB_NOT_FOUND"},
			{Name: "dispatch_agent", Arguments: map[string]any{}, code: "MISSING_PARAMETER"},
		},
		"replace": { // repeated: from the second time on, nothing changes
			{Name: "replace", Arguments: map[string]any{"file_path": "made/new.txt", "content": "made\n"}, text: "1 line, 5 bytes"},
			{Name: "replace", Arguments: map[string]any{"file_path": "../escape", "content": ""}, code: "OUTSIDE_ROOT"},
		},
	}[tool]
	require.NotEmpty(t, calls, "conformance: add calls of the tool %s", tool)
	return calls
}

// fixtureRoot creates a small tree for these calls.
func fixtureRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "src"), 0o755))
	for name, text := range map[string]string{
		"notes.txt":   "first line\nsecond line\n",
		"src/main.go": "package main\n\nfunc main() {}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o644))
	}
	return root
}

// binaries builds all programs into one directory, where the host finds the tools.
func binaries(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(os.Getenv(builtInto), "all")
	packages, err := filepath.Glob("../../tools/*/main.go")
	require.NoError(t, err)
	for _, main := range append(packages, "../../host/main.go") {
		name := filepath.Base(filepath.Dir(main))
		from := "./tools/" + name
		if name == "host" {
			from = "./host"
		}
		place(t, from, filepath.Join(dir, "mcp-"+name))
	}
	return dir
}

// alone puts the host without the tools, the suites' server, and the driver into one
// directory.
func alone(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(os.Getenv(builtInto), "alone")
	place(t, "./host", filepath.Join(dir, "mcp-host"))
	place(t, "./bench/conformance/upstream", filepath.Join(dir, "suite-upstream"))
	place(t, "./bench/conformance/driver", filepath.Join(dir, "driver"))
	return dir
}

// place builds a package once and copies the program to a path. It does not replace an
// existing file, which may be running.
func place(t *testing.T, from, to string) {
	t.Helper()
	built := mcpkittest.Build(t, from)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	if _, err := os.Stat(to); err == nil {
		return
	}
	content, err := os.ReadFile(built)
	require.NoError(t, err)
	fresh, err := os.CreateTemp(filepath.Dir(to), ".fresh-*")
	require.NoError(t, err)
	_, err = fresh.Write(content)
	require.NoError(t, errors.Join(err, fresh.Chmod(0o755), fresh.Close()))
	require.NoError(t, os.Rename(fresh.Name(), to))
}

// builtInto is the environment variable with the directory for built programs.
const builtInto = "TOOLROOM_TESTS_BUILD"

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "toolroom-conformance-")
	if err == nil {
		err = os.Setenv(builtInto, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// doors returns every binary as a stdio server, and the host over HTTP.
func doors(t *testing.T) []door {
	t.Helper()
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1") // hosts serve dispatch_agent if they find a model
	dir := binaries(t)
	root := fixtureRoot(t)
	built, err := filepath.Glob(filepath.Join(dir, "mcp-*"))
	require.NoError(t, err)
	var all []door
	var tools []string
	for _, binary := range built {
		name := strings.TrimPrefix(filepath.Base(binary), "mcp-")
		if name == "host" {
			continue
		}
		tools = append(tools, name)
		all = append(all, door{
			name: filepath.Base(binary), command: binary, tools: []string{name},
			args: []string{"--root", root, "--state", t.TempDir()},
		})
	}
	host := filepath.Join(dir, "mcp-host")
	return append(all,
		door{name: "mcp-host stdio", command: host, args: []string{"stdio", "--root", root, "--state", t.TempDir()}, tools: tools},
		door{name: "mcp-host serve", url: serveHost(t, host, root), tools: tools})
}

// serveHost starts the host on a free port and waits until it answers.
func serveHost(t *testing.T, host, root string, more ...string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	ctx, stop := context.WithCancel(context.Background())
	args := append([]string{"serve", "--listen", address, "--root", root, "--state", t.TempDir()}, more...)
	cmd := exec.CommandContext(ctx, host, args...)
	cmd.Env = append(os.Environ(), "TOOLROOM_TOKEN="+token)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	require.NoError(t, cmd.Start())
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		stop()
		if err := <-exited; t.Failed() {
			t.Logf("mcp-host serve ended: %v\n%s", err, log.String())
		}
	})
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, 20*time.Second, 20*time.Millisecond, "mcp-host serve does not answer /healthz")
	return "http://" + address + "/mcp"
}

// eachDoor runs a test for every door and both eras.
func eachDoor(t *testing.T, test func(t *testing.T, d door, era string)) {
	all := doors(t)
	for _, era := range []string{legacy, modern} {
		for _, d := range all {
			t.Run(era+"/"+d.name, func(t *testing.T) { test(t, d, era) })
		}
	}
}

// calls returns the calls for all tools of a door.
func (d door) calls(t *testing.T) []call {
	var all []call
	for _, tool := range d.tools {
		all = append(all, callsOf(t, tool)...)
	}
	return all
}

// answer is a tool's answer as the client reports it.
type answer struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	IsError bool           `json:"isError"`
	Meta    map[string]any `json:"_meta"`
	Thrown  string         `json:"thrown"` // a protocol error, as text
	Code    any            `json:"code"`
}

// check compares an answer with the expected one.
func (c call) check(t *testing.T, got answer) {
	t.Helper()
	require.Empty(t, got.Thrown, "%s %v", c.Name, c.Arguments)
	require.NotEmpty(t, got.Content, "%s %v", c.Name, c.Arguments)
	require.Equal(t, c.code != "", got.IsError, "%s %v: %s", c.Name, c.Arguments, got.Content[0].Text)
	require.Contains(t, got.Content[0].Text, c.text)
	if c.code != "" {
		require.Equal(t, c.code, got.Meta["toolroom/code"], got.Content[0].Text)
	}
}
