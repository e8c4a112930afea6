//go:build oracle

package signin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// claudeCode is an installation of Claude Code with its own home directory.
type claudeCode struct {
	t             *testing.T
	program, home string
	model         string // address of the Messages API
}

func newClaudeCode(t *testing.T, model string) claudeCode {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	return claudeCode{t, filepath.Join(oracle.Module(t, "@anthropic-ai/claude-code-linux-"+arch), "claude"), t.TempDir(), model}
}

// login signs a user in. Claude Code does that only on a terminal.
func (c claudeCode) login(user, server string) {
	c.t.Helper()
	pty := mcpkittest.Build(c.t, "./tools/bash/testdata/pty")
	text, err := c.command(user, pty, c.program, "mcp", "login", server).CombinedOutput()
	require.NoError(c.t, err, "%s", text)
}

// run runs a command of Claude Code, with a user at the browser.
func (c claudeCode) run(user string, args ...string) (out string, ok bool) {
	text, err := c.command(user, append([]string{c.program}, args...)...).CombinedOutput()
	return string(text), err == nil
}

func (c claudeCode) command(user string, args ...string) *exec.Cmd {
	const nowhere = "http://127.0.0.1:9"
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = c.home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "TMPDIR=" + c.t.TempDir(), "TERM=dumb", "NO_COLOR=1", "CLAUDE_CONFIG_DIR=" + filepath.Join(c.home, ".claude"),
		"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "NO_PROXY=127.0.0.1,localhost",
		"BROWSER=" + os.Args[0], browserUser + "=" + user,
		"ANTHROPIC_BASE_URL=" + c.model, "ANTHROPIC_API_KEY=none", "ENABLE_TOOL_SEARCH=false", "MCP_CONNECTION_NONBLOCKING=0",
		"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
	return cmd
}

func (c claudeCode) succeeds(user string, args ...string) string {
	c.t.Helper()
	out, ok := c.run(user, args...)
	require.True(c.t, ok, "%v: %s", args, out)
	return out
}

// oneCall is a model that calls a tool once and then says the result.
func oneCall(t *testing.T, tool string) *httptest.Server {
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var sent struct {
			Stream   bool
			Messages []struct{ Content json.RawMessage }
		}
		if !strings.HasSuffix(r.URL.Path, "/v1/messages") || json.NewDecoder(r.Body).Decode(&sent) != nil {
			http.NotFound(w, r)
			return
		}
		text := json.RawMessage(nil)
		for _, message := range sent.Messages {
			if strings.Contains(string(message.Content), `"tool_result"`) {
				text = message.Content
			}
		}
		block := map[string]any{"type": "tool_use", "id": "toolu_1", "name": tool, "input": map[string]any{}}
		start, delta, stop := block, map[string]any{"type": "input_json_delta", "partial_json": `{"text":"hello"}`}, "tool_use"
		if text != nil {
			start, delta, stop = map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": string(text)}, "end_turn"
		}
		usage := map[string]any{"input_tokens": 1, "output_tokens": 1}
		message := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []any{}, "stop_reason": nil, "usage": usage}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []map[string]any{
			{"type": "message_start", "message": message}, {"type": "content_block_start", "index": 0, "content_block": start},
			{"type": "content_block_delta", "index": 0, "delta": delta}, {"type": "content_block_stop", "index": 0},
			{"type": "message_delta", "delta": map[string]any{"stop_reason": stop}, "usage": usage}, {"type": "message_stop"},
		} {
			line, err := json.Marshal(event)
			if err != nil {
				t.Error(err)
			}
			w.Write([]byte("event: " + event["type"].(string) + "\ndata: " + string(line) + "\n\n")) //nolint:errcheck // the client reports it
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// Claude Code signs its user in to the host with its own OAuth client, and calls a tool
// as that user.
func TestClaudeCodeSignsInToServe(t *testing.T) {
	f := newFront(t, "jwt")
	c := newClaudeCode(t, oneCall(t, "mcp__team__notes__echo").URL)
	c.succeeds("bob", "mcp", "add", "--transport", "http", "--scope", "user", "team", f.url+"/mcp")
	require.Contains(t, c.succeeds("bob", "mcp", "list"), "eeds authentication")
	c.login("bob", "team")
	require.Contains(t, c.succeeds("bob", "mcp", "list"), "Connected")
	out := c.succeeds("bob", "-p", "call the tool", "--allowedTools", "mcp__team__*", "--model", "claude-sonnet-4-5")
	require.Contains(t, out, "hello")
	require.Contains(t, f.callers(), "http/bob")
	require.Contains(t, f.said.String(), "caller=http/bob tool=notes__echo")
	require.Zero(t, f.passedOn.Load(), "the user's token is passed to no server")
}
