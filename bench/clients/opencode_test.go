//go:build oracle

package clients

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// opencode runs opencode with a provider that speaks OpenAI's chat API.
func opencode() agent {
	return agent{
		name: "opencode", api: completions{}, images: true, whole: 50000,
		named: func(server, tool string) string { return server + "_" + tool },
		command: func(t *testing.T, s setup) *exec.Cmd {
			servers := map[string]any{}
			for _, server := range s.servers {
				servers[server.name] = map[string]any{"type": "local", "command": server.command, "enabled": true, "timeout": 240000}
			}
			vision := map[string]any{"name": "model", "tool_call": true, "attachment": true,
				"modalities": map[string]any{"input": []string{"text", "image"}, "output": []string{"text"}}}
			dir := filepath.Join(s.home, ".config", "opencode")
			require.NoError(t, os.MkdirAll(dir, 0o700))
			text, err := json.Marshal(map[string]any{
				"autoupdate": false, "share": "disabled", "model": "script/model", "permission": "allow", "mcp": servers,
				"provider": map[string]any{"script": map[string]any{"npm": "@ai-sdk/openai-compatible", "name": "script",
					"options": map[string]any{"baseURL": s.url + "/v1", "apiKey": "none"}, "models": map[string]any{"model": vision}}},
			})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "opencode.json"), text, 0o600))
			cmd := exec.Command(filepath.Join(oracle.Module(t, "opencode-"+platform(t)), "bin", "opencode"), "run", s.prompt)
			cmd.Env = append(s.env(), "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
				"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1")
			return cmd
		},
	}
}

// completions is OpenAI's chat API.
type completions struct{}

func (completions) read(r *http.Request, body []byte) (request, bool, error) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		return request{}, false, nil
	}
	var sent struct {
		Stream   bool
		Tools    []struct{ Function definition }
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return request{}, true, err
	}
	seen := request{stream: sent.Stream}
	for _, tool := range sent.Tools {
		seen.tools = append(seen.tools, tool.Function)
	}
	for _, message := range sent.Messages {
		parts, err := blocks(message.Content)
		if err != nil {
			return seen, true, err
		}
		if message.Role == "tool" {
			seen.results = append(seen.results, received{})
		}
		// An image of a result comes in the user message after it.
		for _, part := range parts {
			if last := len(seen.results) - 1; last >= 0 && (message.Role == "tool" || part.Type == "image_url") {
				seen.results[last].add(part.Type, part.Text)
			}
		}
	}
	return seen, true, nil
}

func (completions) write(w http.ResponseWriter, r request, text string, call *toolCall) error {
	delta, stop := map[string]any{"role": "assistant", "content": text}, "stop"
	if call != nil {
		arguments, err := json.Marshal(call.arguments)
		if err != nil {
			return err
		}
		stop = "tool_calls"
		delta = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"index": 0, "id": call.id, "type": "function",
			"function": map[string]any{"name": call.name, "arguments": string(arguments)}}}}
	}
	answer := func(choice map[string]any) map[string]any {
		choice["index"] = 0
		return map[string]any{"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": "model", "choices": []any{choice},
			"usage": map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
	}
	if !r.stream {
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(answer(map[string]any{"message": delta, "finish_reason": stop}))
	}
	err := stream(w, answer(map[string]any{"delta": delta}), answer(map[string]any{"delta": map[string]any{}, "finish_reason": stop}))
	if err == nil {
		_, err = io.WriteString(w, "data: [DONE]\n\n")
	}
	return err
}
