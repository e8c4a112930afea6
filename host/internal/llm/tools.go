package llm

import (
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeTools writes a list of tools, each by one, and says what is lost of which.
func EncodeTools(tools []Tool, one func(Tool) (*tree.Value, Losses)) (*tree.Value, Losses) {
	list := tree.List()
	var all Losses
	for _, t := range tools {
		definition, losses := one(t)
		list.Items = append(list.Items, definition)
		all = append(all, losses.Of(t.Name)...)
	}
	return list, all
}

// Begun is a definition as vendors begin it, with its name and description.
func (t Tool) Begun(names *Names, rule NameRule, losses *Losses) *tree.Value {
	name := names.Sent(rule, t.Name)
	if name != t.Name {
		losses.Carry("/name", rule.String(), tree.Str(t.Name))
	}
	d := tree.Obj("name", tree.Str(name))
	if t.Description != "" {
		d.Set("description", tree.Str(t.Description))
	}
	return d
}

// DecodeTools reads a list of tools by read. What that does not take is lost.
func DecodeTools(data json.RawMessage, read func(list *tree.Value) []Tool) ([]Tool, Losses, error) {
	v, err := tree.Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("tools: %w", err)
	}
	var losses Losses
	tools := read(v)
	losses.Unread(v)
	return tools, losses, nil
}

// Messages splits a vendor's message: tool results, which some vendors put next to
// other parts, become separate messages.
func Messages(role Role, parts []Part) []Message {
	var out []Message
	for _, p := range parts {
		side := role
		if p.Type == Result {
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
