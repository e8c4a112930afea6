// Package anthropic writes and reads the wire format of the Messages API.
package anthropic

import (
	"encoding/json"
	"fmt"

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
	list := tree.List()
	var all convert.Losses
	for _, t := range tools {
		definition, losses := encodeTool(t, o)
		list.Items = append(list.Items, definition)
		all = append(all, losses.Of(t.Name)...)
	}
	return list, all
}

func encodeTool(t convert.Tool, o Options) (*tree.Value, convert.Losses) {
	var losses convert.Losses
	t.Unplaced(&losses, "Anthropic", false)
	name := o.Names.Sent(Rule(), t.Name)
	if name != t.Name {
		losses.Carry("/name", "names have at most 64 letters, digits, _ and -", tree.Str(t.Name))
	}
	d := tree.Obj("name", tree.Str(name))
	if t.Description != "" {
		d.Set("description", tree.Str(t.Description))
	}
	var written *tree.Value
	if o.Strict || t.Strict {
		written = schema.Strict(t.Input, schema.HeldByAnthropic(), &losses)
	}
	if written != nil {
		d.Set("strict", tree.Boolean(true))
	} else {
		written = schema.Plain(t.Input, "Anthropic", &losses)
	}
	d.Set("input_schema", written)
	return d, losses
}

// DecodeTools reads a request's tools.
func DecodeTools(data json.RawMessage, o Options) ([]convert.Tool, convert.Losses, error) {
	v, err := tree.Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("tools: %w", err)
	}
	var losses convert.Losses
	tools := decodeTools(v, o)
	losses.Unread(v)
	return tools, losses, nil
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
