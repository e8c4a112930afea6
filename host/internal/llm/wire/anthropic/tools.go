// Package anthropic encodes and decodes the wire format of the Messages API.
package anthropic

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// NameRule returns Anthropic's rule for names of tools.
func NameRule() llm.NameRule { return llm.NameRule{Max: 64} }

// Options are options of the encoders and decoders.
type Options struct {
	Names  *llm.NameMap // of the request's tools; nil: invalid names are replaced
	Strict bool         // enforce the schemas of all tools (strict mode)

	MaxTokens int // for requests without a limit, which Anthropic requires; 0: 4096
}

// EncodeTools encodes a request's tools.
func EncodeTools(tools []llm.Tool, o Options) (*tree.Value, llm.Losses) {
	return llm.EncodeTools(tools, func(t llm.Tool) (*tree.Value, llm.Losses) { return encodeTool(t, o) })
}

// encodeTool returns a tool's definition, and what the format cannot express.
func encodeTool(t llm.Tool, o Options) (*tree.Value, llm.Losses) {
	var losses llm.Losses
	t.ReportUnsupported(&losses, "Anthropic", false)
	d := t.NameAndDescription(o.Names, NameRule(), &losses)
	written, strict := schema.StrictOrPlain(t.Input, o.Strict || t.Strict, schema.AnthropicLimits(), "Anthropic", &losses)
	if strict {
		d.Set("strict", tree.Boolean(true))
	}
	d.Set("input_schema", written)
	return d, losses
}

// DecodeTools decodes a request's tools. It returns the error of llm.DecodeTools; what it
// cannot read is a loss.
func DecodeTools(data json.RawMessage, o Options) ([]llm.Tool, llm.Losses, error) {
	return llm.DecodeTools(data, func(list *tree.Value) []llm.Tool { return decodeTools(list, o) })
}

// decodeTools returns the tools in the array tools; Anthropic's built-in tools are left
// unread.
func decodeTools(list *tree.Value, o Options) []llm.Tool {
	var tools []llm.Tool
	for _, item := range list.TakeItems() {
		if kind := item.Get("type").Str(); kind != "" && kind != "custom" {
			continue // a built-in tool of Anthropic
		}
		item.Take("type").Str()
		t := llm.Tool{
			Name:        o.Names.FromVendor(item.Take("name").Str()),
			Description: item.Take("description").Str(),
			Input:       item.Take("input_schema").TakeRaw(),
		}
		if strict := item.Take("strict").Flag(); strict != nil {
			t.Strict = *strict
		}
		tools = append(tools, t)
	}
	return tools
}
