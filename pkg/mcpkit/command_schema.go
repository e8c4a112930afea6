package mcpkit

import (
	"encoding/json"
	"io"
)

// printSchema prints the tools' definitions as indented JSON: {"tools": […]} as
// in tools/list, or for --schema=openai a list of OpenAI's function tools.
func (c *Command) printSchema(w io.Writer, tools *registry) error {
	list := make([]any, 0, tools.Len())
	for _, t := range tools.All() {
		if c.common.schema == "openai" {
			schema, _ := t.Schema(true)
			list = append(list, map[string]any{"type": "function", "function": map[string]any{
				"name": t.Name(), "description": t.Def().Description, "strict": true, "parameters": schema}})
			continue
		}
		list = append(list, t.Definition())
	}
	var shown any = map[string]any{"tools": list}
	if c.common.schema == "openai" {
		shown = list
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(shown)
}
