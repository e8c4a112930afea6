package core_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	hostagent "github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/httpapi"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// caller is a model that calls one tool, and what the API knows of the host;
// it notes what became of the call.
type caller struct {
	*core.App
	tool, arguments string
	codes           []toolerr.Code
}

func (c *caller) Info() provider.Info { return provider.Info{Name: "m", Window: 1 << 20} }

func (c *caller) Ask(_ context.Context, r *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
	if last := r.Messages[len(r.Messages)-1]; last.Role == llm.ToolRole {
		if text := last.Parts[0].ToolResult.Content[0].Text; len(c.codes) == 0 { // it was not offered
			_, text, _ = strings.Cut(text, "error: ")
			text, _, _ = strings.Cut(text, ":")
			c.codes = append(c.codes, toolerr.Code(text))
		}
		return &llm.Response{Parts: []llm.Part{{Type: llm.TextPart, Text: "done"}}, StopReason: llm.StopEnd}, nil
	}
	made := &llm.ToolCall{ID: "c", Name: c.tool, Args: json.RawMessage(c.arguments)}
	return &llm.Response{Parts: []llm.Part{{Type: llm.CallPart, ToolCall: made}}, StopReason: llm.StopCalls}, nil
}

// models has that model alone.
type models struct{ *caller }

func (m models) Get(context.Context, string) (provider.Model, error) { return m.caller, nil }
func (m models) List(context.Context) []provider.Info                { return nil }

func (c *caller) Turn(as call.Caller, only []string) (hostagent.Tools, func() error) {
	tools := c.Toolset(as, nil, core.Ceiling{Only: only})
	return useRecordingKeys{tools, c}, tools.End
}

// useRecordingKeys notes what became of calls.
type useRecordingKeys struct {
	hostagent.Tools
	of *caller
}

func (n useRecordingKeys) Call(ctx context.Context, c *llm.ToolCall, progress func(string)) (*call.Result, error) {
	res, err := n.Tools.Call(ctx, c, progress)
	n.of.codes = append(n.of.codes, toolerr.CodeOf(err))
	return res, err
}

// apiDoors are the ways to call a tool by the API beside MCP.
func apiDoors(t *testing.T, a *core.App) map[string]door {
	c := &caller{App: a}
	kept := a.Store()
	web := httptest.NewServer(httpapi.New(httpapi.Config{
		Models: models{c}, Tools: c, Call: a.Handler, Sessions: a.Sessions(), Responses: a.Responses(), Keys: kept.Keys, Blobs: kept.Blobs,
	}))
	t.Cleanup(web.Close)
	post := func(t *testing.T, path, body string) (status int, answer struct {
		Error struct{ Code toolerr.Code }
	}) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
		return resp.StatusCode, answer
	}
	byModel := func(path, body string) door {
		return func(t *testing.T, tool, arguments string) toolerr.Code {
			c.tool, c.arguments, c.codes = tool, arguments, nil
			status, _ := post(t, path, body)
			require.Equal(t, http.StatusOK, status)
			require.Len(t, c.codes, 1)
			return c.codes[0]
		}
	}
	return map[string]door{
		"/v1/tools/{name}": func(t *testing.T, tool, arguments string) toolerr.Code {
			switch status, answer := post(t, "/v1/tools/"+tool, `{"arguments":`+arguments+`}`); status {
			case http.StatusOK:
				return ""
			case http.StatusAccepted:
				return toolerr.PendingApproval
			default:
				return answer.Error.Code
			}
		},
		"/v1/chat/completions": byModel("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"go"}]}`),
		"/v1/responses":        byModel("/v1/responses", `{"model":"m","input":"go"}`),
		"/v1/messages":         byModel("/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"}]}`),
	}
}
