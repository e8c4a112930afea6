package mcpkit

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// structuredAnswer makes the structuredContent of a text tool: the metadata and
// the rows, or else the text. It is complete because some clients pass it to
// the model instead of the content.
func structuredAnswer(res *CallResult, meta []member) json.RawMessage {
	var out []member
	if res.IsError {
		out = append(out, member{"code", text(string(res.Code))})
	}
	content := member{"text", text(res.Text)}
	if res.Rows != nil && !res.IsError {
		if raw, err := jsonrpc.Marshal(rows(res.Rows)); err == nil {
			content = member{"results", &node{kind: '[', raw: raw}}
		}
	}
	return objectOf(dropRepeated(append(append(out, content), meta...))).raw
}
