package llm

import (
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeTools returns the array of the definitions that encode returns for the tools, and
// its losses with the tool's name.
func EncodeTools(tools []Tool, encode func(Tool) (*tree.Value, Losses)) (*tree.Value, Losses) {
	list := tree.List()
	var all Losses
	for _, t := range tools {
		definition, losses := encode(t)
		list.Items = append(list.Items, definition)
		all = append(all, losses.WithTool(t.Name)...)
	}
	return list, all
}

// NameAndDescription returns an object with the members name, valid for the vendor, and
// description, with which every vendor's definition begins. It adds a loss if the name is
// not the tool's own.
func (t Tool) NameAndDescription(names *NameMap, rule NameRule, losses *Losses) *tree.Value {
	name := names.ToVendor(rule, t.Name)
	if name != t.Name {
		losses.AddEquivalent("/name", rule.String(), tree.Str(t.Name))
	}
	d := tree.Obj("name", tree.Str(name))
	if t.Description != "" {
		d.Set("description", tree.Str(t.Description))
	}
	return d
}

// DecodeTools parses the JSON array of a request's tools and returns the tools that
// read decodes from it, and a loss for each value that read did not mark as read. It
// fails only for invalid JSON.
func DecodeTools(data json.RawMessage, read func(list *tree.Value) []Tool) ([]Tool, Losses, error) {
	v, err := tree.Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("tools: %w", err)
	}
	var losses Losses
	tools := read(v)
	losses.AddUnread(v)
	return tools, losses, nil
}

// SplitResults returns the parts of a vendor's message with this role as one or more
// messages: successive tool results, which some vendors put next to other parts, become a
// message with ToolRole.
func SplitResults(role Role, parts []Part) []Message {
	var out []Message
	for _, p := range parts {
		side := role
		if p.Type == ResultPart {
			side = ToolRole
		}
		if last := len(out) - 1; last >= 0 && out[last].Role == side {
			out[last].Parts = append(out[last].Parts, p)
			continue
		}
		out = append(out, Message{Role: side, Parts: []Part{p}})
	}
	return out
}
