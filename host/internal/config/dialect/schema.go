package dialect

import (
	"encoding/json"
	"maps"
)

// Schema returns the JSON Schema of toolroom.yaml. It contains only toolroom's own names;
// files may also use those of other products.
func Schema() []byte {
	properties := map[string]any{}
	for _, f := range fields() {
		if f.schema != nil {
			properties[f.name] = withDescription(f.schema, f.doc)
		}
	}
	server := map[string]any{
		"type": "object", "additionalProperties": false, "properties": properties,
		"oneOf": []any{
			map[string]any{"required": []string{"command"}},
			map[string]any{"required": []string{"url"}},
			map[string]any{"required": []string{"enabled"}, "properties": map[string]any{"enabled": map[string]any{"const": false}},
				"not": map[string]any{"anyOf": []any{map[string]any{"required": []string{"command"}}, map[string]any{"required": []string{"url"}}}}},
		},
	}
	ref := map[string]any{"$ref": "#/$defs/server"}
	foreign := map[string]any{"type": []string{"object", "array"}}
	top := map[string]any{
		"$schema": typeSchema("string"),
		"servers": map[string]any{"type": "object", "propertyNames": map[string]any{"maxLength": 128, "minLength": 1},
			"additionalProperties": ref, "description": "The servers, by name. Their tools are served as NAME__TOOL."},
		"tool_dirs": withDescription(listSchema("string"), "Directories whose mcp-* programs are servers, relative to this file."),
		"inputs": map[string]any{"type": "array", "description": "Inputs in the format of VS Code; the value of input ID is read from the variable TOOLROOM_INPUT_ID.",
			"items": map[string]any{"type": "object", "required": []string{"id"}, "properties": map[string]any{"id": withDescription(typeSchema("string"), "The name of the input."), "description": withDescription(typeSchema("string"), "A comment; the host does not use it."), "default": withDescription(typeSchema("string"), "Value if the variable is not set.")}}},
		"mcpServers":      withDescription(maps.Clone(foreign), "Servers in the format of Claude Desktop, Cursor, Gemini and others; can be pasted unchanged."),
		"mcp_servers":     withDescription(maps.Clone(foreign), "Servers in the format of Codex and others; can be pasted unchanged."),
		"mcp":             withDescription(maps.Clone(foreign), "Servers in the format of opencode and VS Code's settings; can be pasted unchanged."),
		"context_servers": withDescription(maps.Clone(foreign), "Servers in the format of Zed's settings; can be pasted unchanged."),
		"arsenal":         withDescription(maps.Clone(foreign), "Servers in the format of Paladin's config.yml; can be pasted unchanged."),
	}
	for _, s := range settings() {
		if s.schema != nil {
			top[s.name] = withDescription(s.schema, s.doc)
		}
	}
	schema := map[string]any{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "toolroom.yaml",
		"description": "Configuration of mcp-host. Variables: ${NAME}, ${NAME:-default}, {file:PATH}; $$ is a dollar sign.",
		"type":        "object", "additionalProperties": false,
		"properties": top,
		"$defs":      map[string]any{"server": server},
	}
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(err) // of maps and strings
	}
	return text
}
