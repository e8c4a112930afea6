//go:build oracle

package clients

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// gemini runs Gemini CLI.
func gemini() agent {
	return agent{
		name: "Gemini CLI", api: contents{}, images: true, whole: 39000, quotes: true,
		named: func(server, tool string) string { return "mcp_" + server + "_" + tool },
		command: func(t *testing.T, s setup) *exec.Cmd {
			servers := map[string]any{}
			for _, server := range s.servers {
				servers[server.name] = map[string]any{"command": server.command[0], "args": server.command[1:], "trust": true, "timeout": 240000}
			}
			dir := filepath.Join(s.home, ".gemini")
			require.NoError(t, os.Mkdir(dir, 0o700))
			text, err := json.Marshal(map[string]any{
				"security": map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}},
				"general":  map[string]any{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
				"privacy":  map[string]any{"usageStatisticsEnabled": false}, "telemetry": map[string]any{"enabled": false},
				"mcpServers": servers,
			})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "settings.json"), text, 0o600))
			cmd := exec.Command(oracle.Path(t, "node"), filepath.Join(oracle.Module(t, "@google/gemini-cli"), "bundle", "gemini.js"),
				"--prompt", s.prompt, "--yolo", "--model", "gemini-2.5-pro")
			cmd.Env = append(s.env(), "GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL="+s.url, "GEMINI_CLI_TRUST_WORKSPACE=true")
			return cmd
		},
	}
}

// contents is the Gemini API.
type contents struct{}

func (contents) read(r *http.Request, body []byte) (request, bool, error) {
	streamed := strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
	if !streamed && !strings.HasSuffix(r.URL.Path, ":generateContent") {
		return request{}, false, nil
	}
	var sent struct {
		Tools []struct{ FunctionDeclarations []definition }
		// A result's parts follow it in the same content.
		Contents []struct {
			Parts []struct {
				Text             string
				InlineData       json.RawMessage
				FunctionResponse *struct {
					Response struct{ Output, Error string }
					Parts    []struct{ InlineData json.RawMessage }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return request{}, true, err
	}
	seen := request{stream: streamed}
	for _, group := range sent.Tools {
		seen.tools = append(seen.tools, group.FunctionDeclarations...)
	}
	for _, content := range sent.Contents {
		var result *received
		for _, part := range content.Parts {
			if response := part.FunctionResponse; response != nil {
				seen.results = append(seen.results, received{
					text: response.Response.Output + response.Response.Error, isError: response.Response.Error != "", images: len(response.Parts),
				})
				result = &seen.results[len(seen.results)-1]
				continue
			}
			if result == nil {
				continue
			}
			if part.InlineData != nil {
				result.images++
			}
			result.text += part.Text
		}
	}
	return seen, true, nil
}

func (contents) write(w http.ResponseWriter, r request, text string, call *toolCall) error {
	part := map[string]any{"text": text}
	if call != nil {
		part = map[string]any{"functionCall": map[string]any{"id": call.id, "name": call.name, "args": call.arguments}}
	}
	answer := map[string]any{
		"candidates":    []any{map[string]any{"index": 0, "finishReason": "STOP", "content": map[string]any{"role": "model", "parts": []any{part}}}},
		"usageMetadata": map[string]any{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	}
	if !r.stream {
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(answer)
	}
	return stream(w, answer)
}
