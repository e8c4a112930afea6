package cli_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever is not let in reaches no server, and starts none.
func TestNothingIsServedToWhoIsRefused(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	pid := filepath.Join(t.TempDir(), "pid")
	s := serve(t, "--config", writeConfig(t, map[string][]string{"fix": {"-era", "legacy", "-pid", pid}}), "--state", t.TempDir())
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fix__echo","arguments":{"text":"hello"}}}`
	large := strings.Replace(call, "hello", strings.Repeat("x", 17<<20), 1)
	address := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	port := address[strings.LastIndexByte(address, ':'):]
	for _, c := range []struct {
		name, host, origin, token, body string
		want                            int
	}{
		{"another's name", "evil.example" + port, "", s.token, call, 403},
		{"this address at another port", "127.0.0.1:1", "", s.token, call, 403},
		{"another site's page", "", "http://evil.example", s.token, call, 403},
		{"a page of no site", "", "null", s.token, call, 403},
		{"no token", "", "", "", call, 401},
		{"a wrong token", "", "", s.token[1:], call, 401},
		{"17 MiB", "", "", s.token, large, 413},
		{"well formed", "localhost" + port, "http://localhost" + port, s.token, call, 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(c.body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Host = c.host
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil && c.want == http.StatusRequestEntityTooLarge {
			continue // it has been hung up on while it wrote, before it read the answer
		}
		require.NoError(t, err, c.name)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.want, resp.StatusCode, "%s: %s", c.name, text)
		_, err = os.Stat(pid)
		if c.want == 200 {
			require.NoError(t, err)
			require.Contains(t, string(text), "hello")
			continue
		}
		require.ErrorIs(t, err, os.ErrNotExist, "%s: the server was started", c.name)
		require.NotContains(t, string(text), "jsonrpc")
	}
}
