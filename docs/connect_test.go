package docs_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`

// serve starts a host over HTTP, with a model that always gives the same
// answer, and returns the lines that it prints, by the word before the colon.
func serve(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"toolroom/toolroom.yaml": "models: {providers: {tests: {file: answers.yaml}}}\n",
		"toolroom/answers.yaml":  "answers: [{text: the answer}]\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "toolroom"), 0o755)) //nolint:gosec // a test's
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	built, bin := mcpkittest.Build(t, "./host"), t.TempDir()
	program := filepath.Join(bin, "mcp-host"+filepath.Ext(built))
	mcpkittest.CopyProgram(t, built, program)
	mcpkittest.CopyProgram(t, mcpkittest.Build(t, "./tools/ls"), filepath.Join(bin, "mcp-ls"+filepath.Ext(built)))
	host := exec.CommandContext(t.Context(), program, "serve", "--listen", "127.0.0.1:0", "--state", dir, "--root", dir)
	host.Env = append(os.Environ(), "TOOLROOM_TOKEN=", "XDG_CONFIG_HOME="+dir)
	host.Dir = dir
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	t.Cleanup(func() {
		host.Process.Kill() //nolint:errcheck // it may have ended
		host.Wait()         //nolint:errcheck // killed
	})
	printed := map[string]string{}
	for lines := bufio.NewScanner(out); len(printed) < 2 && lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			printed[name] = strings.TrimSpace(value)
		}
	}
	require.NotEmpty(t, printed["token"])
	return printed
}

// Each snippet with an address connects with the token that serve prints, and
// with no other.
func TestClientsConnect(t *testing.T) {
	printed := serve(t)
	connect := func(url string, headers map[string]string, token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(initialize))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for name, value := range headers {
			req.Header.Set(name, strings.Replace(value, "TOKEN", token, 1))
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	ran := 0
	for _, b := range blocks(t, "clients.md") {
		if b.language != "json" || b.directive == "syntax" {
			continue
		}
		var client map[string]map[string]struct {
			URL     string            `json:"url"`
			HTTPURL string            `json:"httpUrl"`
			Headers map[string]string `json:"headers"`
		}
		require.NoError(t, json.Unmarshal([]byte(b.text), &client), b.text)
		for _, servers := range client {
			for name, s := range servers {
				shown := s.URL + s.HTTPURL
				if shown == "" {
					continue
				}
				url := strings.Replace(shown, "http://127.0.0.1:8080/mcp", printed["url"], 1)
				require.NotEqual(t, shown, url, "the address that serve uses by default")
				require.Equal(t, http.StatusOK, connect(url, s.Headers, printed["token"]), name)
				require.Equal(t, http.StatusUnauthorized, connect(url, s.Headers, "TOKEN"), name)
				ran++
			}
		}
	}
	require.GreaterOrEqual(t, ran, 4)
}
