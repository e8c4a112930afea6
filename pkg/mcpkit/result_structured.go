package mcpkit

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// structuredAnswer returns the structuredContent of a text tool: the metadata
// and the rows, or else the text. It is complete because some clients pass it
// to the model instead of the content.
func structuredAnswer(res *CallResult, meta []jsonMember) json.RawMessage {
	var out []jsonMember
	if res.IsError {
		out = append(out, jsonMember{"code", stringNode(string(res.Code))})
	}
	content := jsonMember{"text", stringNode(res.Text)}
	if res.Rows != nil && !res.IsError {
		if raw, err := jsonrpc.Marshal(rowsToEncode(res.Rows)); err == nil {
			content = jsonMember{"results", &jsonNode{kind: '[', raw: raw}}
		}
	}
	return objectNode(dropRepeatedNames(append(append(out, content), meta...))).raw
}
