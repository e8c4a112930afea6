//go:build oracle

package clients

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// claude runs Claude Code.
func claude() agent {
	return agent{
		name: "Claude Code", api: messages{}, images: true, whole: 80000, marksErrors: true,
		named: func(server, tool string) string { return "mcp__" + server + "__" + tool },
		command: func(t *testing.T, s setup) *exec.Cmd {
			servers := map[string]any{}
			var allowed []string
			for _, server := range s.servers {
				servers[server.name] = map[string]any{"command": server.command[0], "args": server.command[1:]}
				allowed = append(allowed, "mcp__"+server.name+"__*")
			}
			config := s.write(t, "mcp.json", map[string]any{"mcpServers": servers})
			program := filepath.Join(oracle.Module(t, "@anthropic-ai/claude-code-"+platform(t)), "claude")
			cmd := exec.Command(program, "-p", s.prompt, "--mcp-config", config, "--strict-mcp-config",
				"--model", "claude-sonnet-4-5", "--allowedTools", strings.Join(append(allowed, "ToolSearch"), ","))
			// Without MCP_CONNECTION_NONBLOCKING the first request may go out
			// before the servers are connected.
			cmd.Env = append(s.env(), "CLAUDE_CONFIG_DIR="+filepath.Join(s.home, ".claude"),
				"ANTHROPIC_BASE_URL="+s.url, "ANTHROPIC_API_KEY=none", "ENABLE_TOOL_SEARCH="+strconv.FormatBool(s.search),
				"MCP_CONNECTION_NONBLOCKING=0", "MCP_CONNECT_TIMEOUT_MS=240000", "MCP_TIMEOUT=240000", "MCP_TOOL_TIMEOUT=240000",
				"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
			return cmd
		},
	}
}

// Claude Code's default is to list no tool of a server: the model finds them with
// ToolSearch, and later requests have the definitions of those that it found.
func TestClaudeToolSearch(t *testing.T) {
	a, bin, root := claude(), binaries(t), project(t)
	a.searches = true
	o := a.run(t, root, host(t, bin, root, ""), func(tool string) string {
		return map[bool]string{true: "toolroom"}[tool != "ToolSearch"]
	}, []step{
		{tool: "ToolSearch", arguments: arguments{"query": "select:mcp__toolroom__view", "max_results": 5}},
		{tool: "view", arguments: arguments{"file_path": "notes.txt"}, text: "\tsecond line"},
	})
	offered := map[string]string{}
	for _, d := range o.model.latest {
		offered[d.Name] = d.Description
	}
	for _, tool := range o.servers["toolroom"].tools {
		require.Contains(t, string(o.model.first), "mcp__toolroom__"+tool.Name, "the name of a tool that is not listed")
		if tool.Name == "view" {
			require.Equal(t, tool.Description, offered["mcp__toolroom__view"])
		}
	}
	a.check(t, o.steps[1])
}

// messages is Anthropic's Messages API.
type messages struct{}

// block is one piece of a message or of a tool result.
type block struct {
	Type    string
	Text    string
	IsError bool `json:"is_error"`
	Content json.RawMessage
}

// blocks reads content, which is a string or a list of blocks.
func blocks(content json.RawMessage) (all []block, err error) {
	if len(content) == 0 {
		return nil, nil
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}, nil
	}
	return all, json.Unmarshal(content, &all)
}

func (messages) read(r *http.Request, body []byte) (request, bool, error) {
	if strings.HasSuffix(r.URL.Path, "/count_tokens") {
		return request{count: 1 + len(body)/4}, true, nil
	}
	if !strings.HasSuffix(r.URL.Path, "/v1/messages") {
		return request{}, false, nil
	}
	var sent struct {
		Stream   bool
		Tools    []definition
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return request{}, true, err
	}
	seen := request{tools: sent.Tools, stream: sent.Stream}
	for _, message := range sent.Messages {
		content, err := blocks(message.Content)
		if err != nil {
			return seen, true, err
		}
		for _, piece := range content {
			if piece.Type != "tool_result" {
				continue
			}
			inner, err := blocks(piece.Content)
			if err != nil {
				return seen, true, err
			}
			result := received{isError: piece.IsError}
			for _, part := range inner {
				result.add(part.Type, part.Text)
			}
			seen.results = append(seen.results, result)
		}
	}
	return seen, true, nil
}

func (messages) write(w http.ResponseWriter, r request, text string, call *toolCall) error {
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1}
	message := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}
	content, stop := map[string]any{"type": "text", "text": text}, "end_turn"
	start, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": text}
	if call != nil {
		arguments, err := json.Marshal(call.arguments)
		if err != nil {
			return err
		}
		stop = "tool_use"
		content = map[string]any{"type": "tool_use", "id": "toolu_" + call.id, "name": call.name, "input": call.arguments}
		start = map[string]any{"type": "tool_use", "id": "toolu_" + call.id, "name": call.name, "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(arguments)}
	}
	if !r.stream {
		message["content"], message["stop_reason"] = []any{content}, stop
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(message)
	}
	return stream(w,
		map[string]any{"type": "message_start", "message": message},
		map[string]any{"type": "content_block_start", "index": 0, "content_block": start},
		map[string]any{"type": "content_block_delta", "index": 0, "delta": delta},
		map[string]any{"type": "content_block_stop", "index": 0},
		map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": usage},
		map[string]any{"type": "message_stop"})
}

// add takes one part of a result's content.
func (r *received) add(kind, text string) {
	switch kind {
	case "image", "input_image", "image_url", "inlineData":
		r.images++
	default:
		r.text += text
	}
}
