package dialect

// toolsSchema returns the schema of the setting tools, for editors. Package manifest reads
// the setting.
func toolsSchema() map[string]any {
	text, object := typeSchema("string"), typeSchema("object")
	count := map[string]any{"type": "integer", "minimum": 0}
	properties := map[string]any{
		"name": text, "namespace": text, "title": text, "description": text, "version": text,
		"mode":       enumSchema("mock", "http", "live", "chain", "mcp", "exec", "client"),
		"timeout_ms": count, "input_schema": object, "output_schema": object,
		"read_only": typeSchema("boolean"), "idempotent": typeSchema("boolean"), "enabled": typeSchema("boolean"), "annotations": object,
		"mock_result": map[string]any{}, "mock_template": text, "mock_result_file": text, "mock_template_file": text, "mock_parts": typeSchema("array"),
		"http": object, "chain": map[string]any{"type": []string{"object", "array"}}, "mcp": object, "exec": object, "client": object, "file": text,
	}
	tool := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	manifest := map[string]any{"type": "object", "required": []string{"kind", "spec"}}
	either := map[string]any{"anyOf": []any{tool, manifest}}
	return map[string]any{"oneOf": []any{
		map[string]any{"type": "object", "additionalProperties": tool},
		map[string]any{"type": "array", "items": either},
	}}
}

// readDeclared reads the setting tools without interpreting it; package manifest does.
func readDeclared(r *reader, n *node, s *Settings) {
	if n.kind != mapNode && n.kind != listNode && n.kind != nullNode {
		r.problem("want a map of tools by name, or a list of tools, not %s", n.kindWord())
		return
	}
	s.Tools = n.toTree()
}
