package wire

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Confirm asks the user, through the client of ctx's request, to agree to message, and
// waits for the answer. asked is false if the client cannot ask the user. agreed is true
// only if the user agreed; err says that the client did not answer properly or that ctx
// ended.
func Confirm(ctx context.Context, message string) (agreed, asked bool, err error) {
	req := requestOf(ctx)
	if req == nil || req.isModern() {
		return false, false, nil
	}
	req.conn.handshake.mu.Lock()
	able := req.conn.handshake.ready && req.conn.handshake.capabilities.Elicitation != nil
	req.conn.handshake.mu.Unlock()
	if !able {
		return false, false, nil
	}
	var answer struct {
		Action  string `json:"action"`
		Content struct {
			Agree *bool `json:"agree"`
		} `json:"content"`
	}
	params := map[string]any{
		"message": message,
		"requestedSchema": map[string]any{
			"type":       "object",
			"properties": map[string]any{"agree": map[string]any{"type": "boolean", "title": "Agree", "default": false}},
			"required":   []string{"agree"},
		},
	}
	if jsonrpc.MemberOf(jsonrpc.MemberOf(req.params, "_meta"), MetaClient) != nil {
		params["_meta"] = map[string]any{MetaRequest: req.id}
	}
	if err = req.conn.ask(ctx, string(mcp.MethodElicitationCreate), params, &answer); err != nil {
		return false, true, err
	}
	return answer.Action == "accept" && answer.Content.Agree != nil && *answer.Content.Agree, true, nil
}
