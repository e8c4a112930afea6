package llm

import (
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// ParseTool reads an entry of MCP's tools/list.
func ParseTool(definition json.RawMessage) (Tool, error) {
	v, err := tree.Parse(definition)
	if err != nil {
		return Tool{}, fmt.Errorf("tool definition: %w", err)
	}
	if !v.Is(tree.Object) || v.Get("name").Str() == "" {
		return Tool{}, fmt.Errorf("a tool definition must be an object with a name, not %.80s", definition)
	}
	var t Tool
	for _, m := range v.Members {
		switch {
		case m.Name == "name" && m.Value.Is(tree.String):
			t.Name = m.Value.Text
		case m.Name == "title" && m.Value.Is(tree.String):
			t.Title = m.Value.Text
		case m.Name == "description" && m.Value.Is(tree.String):
			t.Description = m.Value.Text
		case m.Name == "inputSchema":
			t.Input = m.Value.Whole()
		case m.Name == "outputSchema":
			t.Output = m.Value.Whole()
		case m.Name == "annotations":
			t.Annotations = m.Value.Whole()
		default:
			t.Others = append(t.Others, Member{m.Name, m.Value.Whole()})
		}
	}
	return t, nil
}

// Definition is the reverse of ParseTool.
func (t Tool) Definition() *tree.Value {
	v := tree.Obj("name", tree.Str(t.Name))
	if t.Title != "" {
		v.Set("title", tree.Str(t.Title))
	}
	if t.Description != "" {
		v.Set("description", tree.Str(t.Description))
	}
	input := tree.Raw(t.Input)
	if input == nil { // which MCP requires
		input = tree.Obj("type", tree.Str("object"))
	}
	v.Set("inputSchema", input)
	for _, m := range []Member{{"outputSchema", t.Output}, {"annotations", t.Annotations}} {
		if m.Value != nil {
			v.Set(m.Name, tree.Raw(m.Value))
		}
	}
	for _, m := range t.Others {
		v.Set(m.Name, tree.Raw(m.Value))
	}
	return v
}

// MarshalJSON writes the definition.
func (t Tool) MarshalJSON() ([]byte, error) { return t.Definition().JSON(), nil }

// UnmarshalJSON reads one.
func (t *Tool) UnmarshalJSON(data []byte) error {
	read, err := ParseTool(data)
	*t = read
	return err
}

// Unplaced reports the members of a definition that a vendor's has no place
// for.
func (t Tool) Unplaced(losses *Losses, vendor string, output bool) {
	why := vendor + "'s definitions have no such field"
	if t.Title != "" {
		losses.Lose("/title", why)
	}
	if t.Output != nil && !output {
		losses.Lose("/outputSchema", why)
	}
	if t.Annotations != nil {
		losses.Lose("/annotations", why)
	}
	for _, m := range t.Others {
		losses.Lose(Key("", m.Name), why)
	}
}
