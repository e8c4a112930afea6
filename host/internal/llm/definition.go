package llm

import (
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// ParseTool decodes an entry of MCP's tools/list. It fails for invalid JSON and without a
// name. Members of an unexpected type are kept in ExtraMembers.
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
			t.Input = m.Value.TakeRaw()
		case m.Name == "outputSchema":
			t.Output = m.Value.TakeRaw()
		case m.Name == "annotations":
			t.Annotations = m.Value.TakeRaw()
		default:
			t.ExtraMembers = append(t.ExtraMembers, Member{m.Name, m.Value.TakeRaw()})
		}
	}
	return t, nil
}

// Definition returns the tool as an entry of MCP's tools/list.
func (t Tool) Definition() *tree.Value {
	v := tree.Obj("name", tree.Str(t.Name))
	if t.Title != "" {
		v.Set("title", tree.Str(t.Title))
	}
	if t.Description != "" {
		v.Set("description", tree.Str(t.Description))
	}
	input := tree.Raw(t.Input)
	if input == nil { // MCP requires a schema
		input = tree.Obj("type", tree.Str("object"))
	}
	v.Set("inputSchema", input)
	for _, m := range []Member{{"outputSchema", t.Output}, {"annotations", t.Annotations}} {
		if m.Value != nil {
			v.Set(m.Name, tree.Raw(m.Value))
		}
	}
	for _, m := range t.ExtraMembers {
		v.Set(m.Name, tree.Raw(m.Value))
	}
	return v
}

// MarshalJSON returns the tool as an entry of MCP's tools/list.
func (t Tool) MarshalJSON() ([]byte, error) { return t.Definition().JSON(), nil }

// UnmarshalJSON decodes an entry of MCP's tools/list; it returns the errors of ParseTool.
func (t *Tool) UnmarshalJSON(data []byte) error {
	read, err := ParseTool(data)
	*t = read
	return err
}

// ReportUnsupported adds a loss for each member of the definition that the vendor's
// format does not have: title, annotations, extra members, and the output schema unless
// output is set.
func (t Tool) ReportUnsupported(losses *Losses, vendor string, output bool) {
	why := vendor + "'s definitions have no such field"
	if t.Title != "" {
		losses.AddLost("/title", why)
	}
	if t.Output != nil && !output {
		losses.AddLost("/outputSchema", why)
	}
	if t.Annotations != nil {
		losses.AddLost("/annotations", why)
	}
	for _, m := range t.ExtraMembers {
		losses.AddLost(AppendKey("", m.Name), why)
	}
}
