package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// session is a legacy session over HTTP.
type session struct {
	served
	id string
}

func (s served) session(t *testing.T) *session {
	t.Helper()
	one := &session{served: s}
	one.send(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	require.NotEmpty(t, one.id)
	one.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return one
}

func (s *session) send(t *testing.T, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+s.token)
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		s.id = id
	}
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

// caller calls a tool and returns the response.
type caller func(tool string, arguments, meta map[string]any) string

func request(t *testing.T, tool string, arguments, meta map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments, "_meta": meta}})
	require.NoError(t, err)
	return string(raw)
}

// A session's views do not count for another session, over HTTP or of another
// host of the same user. No session can name itself as another.
func TestWhatASessionSawIsItsOwn(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	root, state := t.TempDir(), t.TempDir()
	file := filepath.Join(root, "a.txt")
	servers := map[string]any{}
	for _, name := range []string{"view", "edit", "replace"} {
		servers[name] = map[string]any{"command": mcpkittest.Build(t, "./tools/"+name), "args": []string{"--root", root, "--state", state}}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(config, text, 0o600))

	web := serve(t, "--config", config, "--state", t.TempDir())
	overHTTP := func() caller {
		s := web.session(t)
		return func(tool string, arguments, meta map[string]any) string {
			return s.send(t, request(t, tool, arguments, meta))
		}
	}
	overStdio := func() caller {
		c := stdio(t, "--config", config, "--state", t.TempDir())
		c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		c.read()
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return func(tool string, arguments, meta map[string]any) string {
			c.send(request(t, tool, arguments, meta))
			for {
				if line := c.read(); strings.Contains(line, `"id":2`) {
					return line
				}
			}
		}
	}
	see := map[string]any{"file_path": "a.txt"}
	write := map[string]any{"file_path": "a.txt", "content": "new\n"}
	change := map[string]any{"file_path": "a.txt", "old_string": "three", "new_string": "3"}
	for name, begin := range map[string]func() caller{"http": overHTTP, "stdio": overStdio} {
		t.Run(name, func(t *testing.T) {
			a, b := begin(), begin()
			put := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
			put("one\ntwo\nthree\n")
			require.Contains(t, a("view__view", see, nil), "three")
			put("one\ntwo\n3 and three\n")
			require.Contains(t, a("edit__edit", change, nil), "STALE")
			require.NotContains(t, b("edit__edit", change, nil), "STALE")
			put("one\nTWO\nthree\n")
			require.Contains(t, a("replace__replace", write, nil), "STALE")

			// b cannot pass for a, whatever it says; it only divides itself.
			for _, claim := range []any{"", "a", nil, 7} {
				put("one\nTWO\nthree\n" + fmt.Sprint(claim))
				got := b("view__view", see, map[string]any{"toolroom/client": claim})
				require.Contains(t, got, "TWO")
				require.Contains(t, a("replace__replace", write, nil), "STALE", "b's view is not a's")
			}
			require.NotContains(t, b("replace__replace", write, map[string]any{"toolroom/client": "another of b's"}), "STALE")
		})
	}
}
