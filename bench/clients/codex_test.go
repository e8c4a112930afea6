//go:build oracle

package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// codex runs Codex. The model gets the tools of a server as a namespace.
func codex() agent {
	return agent{
		name: "Codex", api: responses{}, images: true, whole: 11000,
		named: func(server, tool string) string { return "mcp__" + server + "/" + tool },
		command: func(t *testing.T, s setup) *exec.Cmd {
			var config strings.Builder
			fmt.Fprintf(&config, "model = %q\nmodel_provider = \"script\"\nweb_search = \"disabled\"\n[analytics]\nenabled = false\n[model_providers.script]\n"+
				"name = \"script\"\nbase_url = %q\nwire_api = \"responses\"\nenv_key = \"SCRIPT_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\n",
				"gpt-5.2", s.url+"/v1")
			for _, server := range s.servers {
				var args []string
				for _, arg := range server.command[1:] {
					args = append(args, strconv.Quote(arg))
				}
				fmt.Fprintf(&config, "[mcp_servers.%s]\ncommand = %q\nargs = [%s]\nstartup_timeout_sec = 240\ntool_timeout_sec = 240\n",
					server.name, server.command[0], strings.Join(args, ", "))
			}
			home := filepath.Join(s.home, ".codex")
			require.NoError(t, os.Mkdir(home, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(config.String()), 0o600))
			programs, err := filepath.Glob(filepath.Join(oracle.Module(t, "codex-"+platform(t)), "vendor", "*", "bin", "codex"))
			require.NoError(t, err)
			require.Len(t, programs, 1)
			cmd := exec.Command(programs[0], "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", s.prompt)
			cmd.Env = append(s.env(), "CODEX_HOME="+home, "SCRIPT_KEY=none")
			return cmd
		},
	}
}

// responses is OpenAI's Responses API.
type responses struct{}

func (responses) read(r *http.Request, body []byte) (request, bool, error) {
	if !strings.HasSuffix(r.URL.Path, "/responses") {
		return request{}, false, nil
	}
	var sent struct {
		Stream bool
		Tools  []json.RawMessage
		Input  []struct {
			Type   string
			Output json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return request{}, true, err
	}
	seen := request{stream: sent.Stream}
	for _, text := range sent.Tools {
		var tool definition
		var space struct{ Tools []definition }
		if err := errors.Join(json.Unmarshal(text, &tool), json.Unmarshal(text, &space)); err != nil {
			return seen, true, err
		}
		if space.Tools == nil {
			seen.tools = append(seen.tools, tool)
		}
		for _, inner := range space.Tools {
			inner.Name = tool.Name + "/" + inner.Name
			seen.tools = append(seen.tools, inner)
		}
	}
	for _, item := range sent.Input {
		if item.Type != "function_call_output" {
			continue
		}
		parts, err := blocks(item.Output)
		if err != nil {
			return seen, true, err
		}
		var result received
		for _, part := range parts {
			result.add(part.Type, part.Text)
		}
		seen.results = append(seen.results, result)
	}
	return seen, true, nil
}

func (responses) write(w http.ResponseWriter, r request, text string, call *toolCall) error {
	item := map[string]any{"type": "message", "role": "assistant", "id": "msg_1",
		"content": []any{map[string]any{"type": "output_text", "text": text}}}
	if call != nil {
		arguments, err := json.Marshal(call.arguments)
		if err != nil {
			return err
		}
		item = map[string]any{"type": "function_call", "id": "fc_" + call.id, "call_id": call.id, "arguments": string(arguments)}
		space, name, nested := strings.Cut(call.name, "/")
		if nested {
			item["namespace"], item["name"] = space, name
		} else {
			item["name"] = call.name
		}
	}
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
	return stream(w,
		map[string]any{"type": "response.created", "response": map[string]any{"id": "resp_1"}},
		map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item},
		map[string]any{"type": "response.completed", "response": map[string]any{"id": "resp_1", "usage": usage}})
}
