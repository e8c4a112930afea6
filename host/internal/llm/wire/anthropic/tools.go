// Package anthropic writes and reads the wire format of the Messages API.
package anthropic

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// Rule returns Anthropic's rule for names of tools.
func Rule() llm.NameRule { return llm.NameRule{Max: 64} }

// Options say how to write for Anthropic.
type Options struct {
	Names  *llm.Names // of the request's tools; nil: names are made to fit
	Strict bool       // hold the model to the schemas of all tools

	MaxTokens int // where a request says none, which Anthropic wants; 0: 4096
}

// EncodeTools writes a request's tools.
func EncodeTools(tools []llm.Tool, o Options) (*tree.Value, llm.Losses) {
	return llm.EncodeTools(tools, func(t llm.Tool) (*tree.Value, llm.Losses) { return encodeTool(t, o) })
}

func encodeTool(t llm.Tool, o Options) (*tree.Value, llm.Losses) {
	var losses llm.Losses
	t.Unplaced(&losses, "Anthropic", false)
	d := t.Begun(o.Names, Rule(), &losses)
	written, strict := schema.Arguments(t.Input, o.Strict || t.Strict, schema.HeldByAnthropic(), "Anthropic", &losses)
	if strict {
		d.Set("strict", tree.Boolean(true))
	}
	d.Set("input_schema", written)
	return d, losses
}

// DecodeTools reads a request's tools.
func DecodeTools(data json.RawMessage, o Options) ([]llm.Tool, llm.Losses, error) {
	return llm.DecodeTools(data, func(list *tree.Value) []llm.Tool { return decodeTools(list, o) })
}

func decodeTools(list *tree.Value, o Options) []llm.Tool {
	var tools []llm.Tool
	for _, item := range list.List() {
		if kind := item.Get("type").Str(); kind != "" && kind != "custom" {
			continue // a tool of Anthropic's own
		}
		item.Take("type").Str()
		t := llm.Tool{
			Name:        o.Names.Own(item.Take("name").Str()),
			Description: item.Take("description").Str(),
			Input:       item.Take("input_schema").Whole(),
		}
		if strict := item.Take("strict").Flag(); strict != nil {
			t.Strict = *strict
		}
		tools = append(tools, t)
	}
	return tools
}
