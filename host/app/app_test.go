package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/app"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// notices collects what Options.Notify is told.
type notices struct {
	mu   sync.Mutex
	text []string
}

func (n *notices) add(notice string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = append(n.text, notice)
}

func (n *notices) all() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.text, "\n")
}

// toolDir returns a directory with the program of one bundled tool, ls.
func toolDir(t *testing.T) string {
	dir := t.TempDir()
	mcpkittest.CopyProgram(t, mcpkittest.Build(t, "./tools/ls"), filepath.Join(dir, "mcp-ls"))
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func names(t *testing.T, h *app.Host) []string {
	t.Helper()
	tools, err := h.Tools(t.Context())
	require.NoError(t, err)
	all := []string{}
	for _, tool := range tools {
		all = append(all, tool.Name)
	}
	return all
}

func TestBundledToolsAndServersOfAFile(t *testing.T) {
	dir, root, work := toolDir(t), t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "found.txt"), "x")
	program := filepath.Join(dir, "mcp-ls")
	write(t, filepath.Join(work, "c.yaml"), fmt.Sprintf("mcpServers:\n  other: {command: %q, args: [--root, %q]}\n", program, root))

	// The files that mcp-host would read by default are not read.
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	require.NoError(t, os.MkdirAll(filepath.Join(home, "config/toolroom"), 0o700))
	write(t, filepath.Join(home, "config/toolroom/toolroom.yaml"), "mcpServers:\n  mine: {command: not-there}\n")

	var told notices
	h, err := app.Open(app.Options{ConfigFile: filepath.Join(work, "c.yaml"), ToolDir: dir, Roots: []string{root}, Notify: told.add})
	require.NoError(t, err)
	defer h.Close()
	require.Equal(t, []string{"ls", "other__ls"}, names(t, h))
	for _, name := range []string{"ls", "other__ls"} {
		answer, err := h.Call(t.Context(), name, map[string]any{"path": "."})
		require.NoError(t, err, name)
		require.Contains(t, answer.Text, "found.txt", name)
	}
	_, err = h.Call(t.Context(), "ls", map[string]any{"path": "/nowhere"})
	var failed *app.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, toolerr.OutsideRoot, toolerr.CodeOf(err))

	// Without StateDir, the host itself stores nothing.
	_, err = os.Stat(filepath.Join(home, "state", "toolroom", "state.db"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Empty(t, told.all())
}

func TestOpenTellsWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	_, err := app.Open(app.Options{ConfigFile: filepath.Join(dir, "absent.yaml")})
	require.ErrorContains(t, err, "absent.yaml")
	write(t, filepath.Join(dir, "c.yaml"), "mcpServers:\n  a: {command: }\n")
	_, err = app.Open(app.Options{ConfigFile: filepath.Join(dir, "c.yaml")})
	require.ErrorContains(t, err, "c.yaml:2")
}

// A server that does not start costs no other server's tools.
func TestToolsOfTheOtherServers(t *testing.T) {
	work, root := t.TempDir(), t.TempDir()
	program := filepath.Join(toolDir(t), "mcp-ls")
	write(t, filepath.Join(work, "c.yaml"), fmt.Sprintf("mcpServers:\n  broken: {command: %q, args: [--no-such-flag]}\n  good: {command: %q, args: [--root, %q]}\n", program, program, root))
	h, err := app.Open(app.Options{ConfigFile: filepath.Join(work, "c.yaml")})
	require.NoError(t, err)
	defer h.Close()
	tools, err := h.Tools(t.Context())
	require.ErrorContains(t, err, "broken")
	require.Len(t, tools, 1)
	require.Equal(t, "good__ls", tools[0].Name)
	require.NotEmpty(t, tools[0].Description)
	require.True(t, json.Valid(tools[0].InputSchema))

	_, err = h.Session("broken").ListTools(t.Context())
	require.ErrorContains(t, err, "broken")
	_, err = h.Session("absent").ListTools(t.Context())
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
	_, err = h.Session("broken").CallTool(t.Context(), "good__ls", json.RawMessage(`{}`))
	require.Equal(t, toolerr.ToolNotFound, toolerr.CodeOf(err), "a session reaches its own server only")
}

func TestWatchAppliesAChangedFile(t *testing.T) {
	work, root := t.TempDir(), t.TempDir()
	program, file := filepath.Join(toolDir(t), "mcp-ls"), filepath.Join(work, "c.yaml")
	servers := func(names ...string) string {
		text := "mcpServers:\n"
		for _, name := range names {
			text += fmt.Sprintf("  %s: {command: %q, args: [--root, %q]}\n", name, program, root)
		}
		return text
	}
	write(t, file, servers("one"))
	var told notices
	h, err := app.Open(app.Options{ConfigFile: file, Notify: told.add})
	require.NoError(t, err)
	defer h.Close()
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- h.Watch(ctx) }()

	require.Equal(t, []string{"one__ls"}, names(t, h))
	write(t, file, servers("one", "two"))
	require.Eventually(t, func() bool { return len(names(t, h)) == 2 }, 30*time.Second, 50*time.Millisecond)
	write(t, file, "mcpServers: [\n")
	require.Eventually(t, func() bool { return strings.Contains(told.all(), "the previous configuration stays in force") }, 30*time.Second, 50*time.Millisecond)
	require.Len(t, names(t, h), 2)
	stop()
	require.NoError(t, <-watched)

	empty, err := app.Open(app.Options{})
	require.NoError(t, err)
	defer empty.Close()
	require.ErrorContains(t, empty.Watch(t.Context()), "ConfigFile is empty")
}

func TestHTTPNeedsTheTokenAndTheName(t *testing.T) {
	h, err := app.Open(app.Options{})
	require.NoError(t, err)
	defer h.Close()
	require.NoError(t, h.Register(newRepeat()))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- h.ServeHTTP(ctx, listener, app.HTTPOptions{Token: "secret", Hosts: []string{"tools.example:443"}})
	}()

	request := func(host, token string) int {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listener.Addr().String()+"/mcp", strings.NewReader(body))
		require.NoError(t, err)
		req.Host = host
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	here := listener.Addr().String()
	require.Equal(t, http.StatusOK, request(here, "secret"))
	require.Equal(t, http.StatusOK, request("tools.example:443", "secret"))
	require.Equal(t, http.StatusUnauthorized, request(here, "wrong"))
	require.Equal(t, http.StatusForbidden, request("evil.example", "secret"))
	stop()
	require.NoError(t, <-served)
	_, err = net.Dial("tcp", here)
	require.Error(t, err, "the listener is closed")
}

func TestStdioEndsWithItsContext(t *testing.T) {
	h, err := app.Open(app.Options{})
	require.NoError(t, err)
	defer h.Close()
	in, client, err := os.Pipe()
	require.NoError(t, err)
	defer client.Close() //nolint:errcheck // a test
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.ServeStdio(ctx, in, os.Stderr) }()
	stop()
	require.NoError(t, <-served)
	h.Close()
	h.Close() // more than once
}

// Calls made after Close fail and do not hang.
func TestCallsAfterClose(t *testing.T) {
	work, root := t.TempDir(), t.TempDir()
	write(t, filepath.Join(work, "c.yaml"), fmt.Sprintf("mcpServers:\n  s: {command: %q, args: [--root, %q]}\n", filepath.Join(toolDir(t), "mcp-ls"), root))
	h, err := app.Open(app.Options{ConfigFile: filepath.Join(work, "c.yaml")})
	require.NoError(t, err)
	require.Len(t, names(t, h), 1)
	h.Close()
	_, err = h.Call(t.Context(), "s__ls", nil)
	require.Error(t, err)
}
