// Package anthropic writes and reads the wire format of the Messages API.
package anthropic

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/convert"
	"github.com/toolroom-mcp/toolroom/host/convert/schema"
	"github.com/toolroom-mcp/toolroom/host/convert/tree"
)

// Rule is what Anthropic takes as the name of a tool.
func Rule() convert.NameRule { return convert.NameRule{Max: 64} }

// Options say how to write for Anthropic.
type Options struct {
	Names  *convert.Names // of the request's tools; nil: names are made to fit
	Strict bool           // hold the model to the schemas of all tools

	MaxTokens int // where a request says none, which Anthropic wants; 0: 4096
}

// EncodeTools writes a request's tools.
func EncodeTools(tools []convert.Tool, o Options) (*tree.Value, convert.Losses) {
	return convert.EncodeTools(tools, func(t convert.Tool) (*tree.Value, convert.Losses) { return encodeTool(t, o) })
}

func encodeTool(t convert.Tool, o Options) (*tree.Value, convert.Losses) {
	var losses convert.Losses
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
func DecodeTools(data json.RawMessage, o Options) ([]convert.Tool, convert.Losses, error) {
	return convert.DecodeTools(data, func(list *tree.Value) []convert.Tool { return decodeTools(list, o) })
}

func decodeTools(list *tree.Value, o Options) []convert.Tool {
	var tools []convert.Tool
	for _, item := range list.List() {
		if kind := item.Get("type").Str(); kind != "" && kind != "custom" {
			continue // a tool of Anthropic's own
		}
		item.Take("type").Str()
		t := convert.Tool{
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
