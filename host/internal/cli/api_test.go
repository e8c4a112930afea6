package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What serve prints is what a client of the API needs: it is let in with it, and not
// without; its session is there after the host has been killed.
func TestServePrintsWhatClientsOfTheAPINeed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	config := filepath.Join(dir, "toolroom.yaml")
	require.NoError(t, os.WriteFile(config, []byte("servers:\n  fix: {command: fixture, args: [-era, legacy]}\nmodels: {default: command}\n"), 0o600))
	host := func() (*running, map[string]string) {
		r, s := serving(t, os.Environ(), "--config", config, "--state", filepath.Join(dir, "state"))
		env := map[string]string{}
		for len(env) < 4 {
			line, _ := strings.CutPrefix(r.read(t), "export ")
			for pair := range strings.FieldsSeq(line) {
				if name, value, ok := strings.Cut(pair, "="); ok {
					env[name] = value
				}
			}
		}
		require.Equal(t, s.token, env["OPENAI_API_KEY"])
		return r, env
	}
	r, env := host()
	do := func(status int, address, body string, headers ...string) map[string]any {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, status, resp.StatusCode, "%s", text)
		require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"))
		var v map[string]any
		require.NoError(t, json.Unmarshal(text, &v), "%s", text)
		return v
	}
	chat, messages := env["OPENAI_BASE_URL"]+"/chat/completions", env["ANTHROPIC_BASE_URL"]+"/v1/messages"
	key := []string{"Authorization", "Bearer " + env["OPENAI_API_KEY"]}
	other := []string{"X-Api-Key", env["ANTHROPIC_API_KEY"]}
	const ask = `{"max_tokens":9,"messages":[{"role":"user","content":"fix__echo text=hello"}]}`
	v := do(401, chat, ask)
	require.Equal(t, "invalid_api_key", v["error"].(map[string]any)["code"])
	v = do(401, messages, ask, "X-Api-Key", "wrong")
	require.Equal(t, "error", v["type"])
	do(403, chat, ask, append(key, "Origin", "http://evil.example")...)
	v = do(200, chat, ask, key...)
	require.Contains(t, v["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["content"], "hello")
	v = do(200, messages, ask, other...)
	require.Contains(t, v["content"].([]any)[0].(map[string]any)["text"], "hello")

	session := do(201, env["OPENAI_BASE_URL"]+"/sessions", `{"name":"kept"}`, key...)["id"].(string)
	do(200, chat, `{"x_session":"`+session+`",`+ask[1:], key...)
	const tools = `"tools":[{"type":"web_search"}],"input":"fix__echo text=`
	first := do(200, env["OPENAI_BASE_URL"]+"/responses", `{`+tools+`kept"}`, key...)
	require.Contains(t, first["output"].([]any)[0].(map[string]any)["content"].([]any)[0].(map[string]any)["text"], "kept")
	do(401, env["OPENAI_BASE_URL"]+"/responses", `{"input":"x"}`)
	r.end()
	_, env = host()
	v = do(200, env["OPENAI_BASE_URL"]+"/responses", `{`+tools+`on","previous_response_id":"`+first["id"].(string)+`"}`, key...)
	require.Equal(t, first["id"], v["previous_response_id"])
	do(400, env["OPENAI_BASE_URL"]+"/responses", `{"input":"x","previous_response_id":"`+first["id"].(string)+`","user":"another"}`, key...)
	v = do(200, env["OPENAI_BASE_URL"]+"/sessions/"+session, `{"name":"renamed"}`, key...)
	require.EqualValues(t, 4, v["messages"])
}
