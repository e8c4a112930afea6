package httpapi

import "strings"

// schemas returns the component schemas of the OpenAPI description by name. For the
// vendors' own types they describe only what the API reads.
func schemas() map[string]any {
	all := map[string]any{
		"Object":         typed("object"),
		"Error":          objectSchema("error", objectSchema("message", "string", "type", "string", "param", textOrNull(), "code", "string")),
		"AnthropicError": objectSchema("type", "string", "error", objectSchema("type", "string", "message", "string", "param", textOrNull(), "code", "string")),
		"Deleted":        objectSchema("id", "string", "object", "string", "deleted", "boolean"),
		"TokenCount":     objectSchema("input_tokens", "integer"),
		"Model": objectSchema("id", "string", "object", "string", "created", "integer", "owned_by", "string", "type", "string", "display_name", "string", "created_at", "string",
			"context_window?", "integer", "max_output_tokens?", "integer"),
		"ModelList":     objectSchema("object", "string", "data", listOfRef("Model"), "has_more", "boolean", "first_id", textOrNull(), "last_id", textOrNull()),
		"InputItemList": objectSchema("object", "string", "data", typed("array", "items", typed("object")), "has_more", "boolean", "first_id", textOrNull(), "last_id", textOrNull()),
		"ToolList":      objectSchema("object", "string", "data", typed("array", "items", typed("object"))),
		"ToolCall":      objectSchema("arguments?", typed("object", "description", "the tool's arguments")),
		"ToolResult": objectSchema("content?", typed("array", "items", typed("object"), "description", "content blocks of MCP"), "structuredContent?", typed("object"),
			"isError?", "boolean"),
		"PendingCall": objectSchema("status", "string", "pending", ref("Pending")),
		"Pending": objectSchema("id?", "string", "reason", "string", "message", "string", "tool", "string", "args?", typed("object"), "expires_at?", "string", "callback_url?", "string",
			"metadata?", typed("object")),
		"Session": objectSchema("id", "string", "name?", "string", "model?", "string", "parent?", "string", "created", "string", "updated", "string", "expires", "string",
			"turns", "integer", "messages", "integer", "bytes", "integer"),
		"SessionList":     objectSchema("object", "string", "data", listOfRef("Session")),
		"SessionChange":   objectSchema("name?", "string", "model?", "string"),
		"SessionFork":     objectSchema("name?", "string", "messages?", typed("integer", "minimum", 1, "description", "number of messages, from the first (default all)")),
		"MessageList":     objectSchema("object", "string", "data", listOfRef("ChatMessage")),
		"MessageAddition": objectSchema("messages", listOfRef("ChatMessage")),
		"ChatMessage":     objectSchema("role", "string", "content?", map[string]any{"description": "text, a list of parts, or null"}, "tool_calls?", typed("array", "items", typed("object")), "tool_call_id?", "string"),
		"Artifact":        objectSchema("id", "string", "object", "string", "name", "string", "type", "string", "size", "integer", "created", "string", "expires", "string"),
		"ArtifactList":    objectSchema("object", "string", "data", listOfRef("Artifact")),
		"Approval":        objectSchema("id", "string", "state", "string", "tool", "string", "reason", "string", "arguments?", typed("object")),
		"ApprovalList":    objectSchema("object", "string", "data", listOfRef("Approval")),
		"Decision":        objectSchema("decision", typed("string", "enum", []string{"approve", "deny"}), "arguments?", typed("object", "description", "replace the caller's arguments"), "note?", "string"),
		"Event": objectSchema("id", "string", "type", typed("string", "enum", []string{"tool.call", "tool.response", "error"}), "call_id?", "string", "name?", "string",
			"arguments?", map[string]any{}, "content?", typed("array", "items", typed("object")), "is_error?", "boolean", "duration_ms?", "integer", "message?", "string", "code?", "string"),
	}
	for name, schema := range vendorSchemas() {
		all[name] = schema
	}
	return all
}

// vendorSchemas returns the schemas, by name, of requests and answers that the vendors
// document, with the host's extensions.
func vendorSchemas() map[string]any {
	ours := []any{
		"x_tools?", typed("array", "items", typed("string"), "description", "names of the host's tools that the model can use, with *; [] for none (default all)"),
		"x_events?", typed("boolean", "description", "whether the answer includes the host's tool calls"),
		"x_session?", typed("string", "description", "id of the session to continue"),
	}
	answers := []any{
		"x_ending?", typed("string", "description", "why the answer ended early"),
		"x_pending?", listOfRef("Pending"),
		"x_events?", listOfRef("Event"),
	}
	model := typed("string", "description", "MODEL, or MODEL|TOOL|TOOL (default: the default model)")
	return map[string]any{
		"ChatCompletionRequest": objectSchema(append([]any{
			"model?", model, "messages", listOfRef("ChatMessage"), "stream?", "boolean", "stream_options?", objectSchema("include_usage?", "boolean"),
			"tools?", typed("array", "items", typed("object")), "tool_choice?", map[string]any{}, "parallel_tool_calls?", "boolean",
			"functions?", typed("array", "items", typed("object")), "function_call?", map[string]any{},
			"max_tokens?", typed("integer", "minimum", 1), "max_completion_tokens?", typed("integer", "minimum", 1),
			"temperature?", typed("number", "minimum", 0, "maximum", 2), "top_p?", typed("number", "minimum", 0, "maximum", 1), "stop?", map[string]any{},
			"n?", typed("integer", "enum", []int{1}), "response_format?", objectSchema("type", typed("string", "enum", append([]string{"text"}, formatTypes()...)), "json_schema?", typed("object")), "user?", "string",
		}, ours...)...),
		"ChatCompletion": objectSchema(append([]any{
			"id", "string", "object", "string", "created", "integer", "model", "string",
			"choices", typed("array", "items", objectSchema("index", "integer", "message", ref("ChatMessage"), "finish_reason", textOrNull())), "usage?", typed("object"),
		}, answers...)...),
		"ResponseRequest": objectSchema(append([]any{
			"model?", model, "input", map[string]any{"description": "text or a list of items"}, "instructions?", textOrNull(), "stream?", "boolean", "store?", "boolean",
			"previous_response_id?", textOrNull(), "tools?", typed("array", "items", typed("object")), "tool_choice?", map[string]any{}, "parallel_tool_calls?", "boolean",
			"max_output_tokens?", typed("integer", "minimum", 1), "temperature?", typed("number", "minimum", 0, "maximum", 2), "top_p?", typed("number", "minimum", 0, "maximum", 1),
			"text?", typed("object"), "reasoning?", typed("object"), "include?", typed("array", "items", typed("string")), "metadata?", typed("object"), "user?", "string",
		}, ours...)...),
		"Response": objectSchema(append([]any{
			"id", "string", "object", "string", "created_at", "integer", "completed_at", map[string]any{"type": []string{"integer", "null"}},
			"status", typed("string", "enum", []string{"completed", "incomplete"}), "background", "boolean", "error", typed("null"), "model", "string",
			"incomplete_details", map[string]any{"type": []string{"object", "null"}}, "instructions", textOrNull(), "output", typed("array", "items", typed("object")),
			"usage", typed("object"), "store", "boolean", "metadata", typed("object"), "parallel_tool_calls", "boolean", "previous_response_id", textOrNull(),
			"max_output_tokens", map[string]any{"type": []string{"integer", "null"}}, "reasoning", typed("object"), "service_tier", "string",
			"temperature", map[string]any{"type": []string{"number", "null"}}, "text", typed("object"), "tool_choice", map[string]any{},
			"tools", typed("array", "items", typed("object")), "top_p", map[string]any{"type": []string{"number", "null"}}, "truncation", "string", "user", textOrNull(),
		}, answers...)...),
		"MessageRequest": objectSchema(append([]any{
			"model?", model, "messages", typed("array", "items", typed("object")), "system?", map[string]any{}, "max_tokens?", typed("integer", "minimum", 1), "stream?", "boolean",
			"tools?", typed("array", "items", typed("object")), "tool_choice?", typed("object"), "temperature?", typed("number", "minimum", 0, "maximum", 1),
			"top_p?", typed("number", "minimum", 0, "maximum", 1), "top_k?", typed("integer", "minimum", 1), "stop_sequences?", typed("array", "items", typed("string")),
		}, ours...)...),
		"Message": objectSchema(append([]any{
			"id", "string", "type", "string", "role", "string", "model", "string", "content", typed("array", "items", typed("object")),
			"stop_reason", textOrNull(), "stop_sequence", textOrNull(), "usage", typed("object"),
		}, answers...)...),
	}
}

// objectSchema returns the schema of an object. pairs are names of members, with ? if
// optional, and their schemas or the names of types.
func objectSchema(pairs ...any) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, optional := strings.CutSuffix(pairs[i].(string), "?")
		if !optional {
			required = append(required, name)
		}
		schema := pairs[i+1]
		if kind, ok := schema.(string); ok {
			schema = typed(kind)
		}
		properties[name] = schema
	}
	s := typed("object", "properties", properties)
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// textOrNull returns the schema of a string or null.
func textOrNull() map[string]any { return map[string]any{"type": []string{"string", "null"}} }

// listOfRef returns the schema of a list with items of a named schema.
func listOfRef(name string) map[string]any { return typed("array", "items", ref(name)) }
