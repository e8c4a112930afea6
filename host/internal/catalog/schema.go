package catalog

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// sanitizeInput is a sanitizer that returns a schema of an object whose subschemas are
// objects. It returns true if information of the value was lost.
func sanitizeInput(value json.RawMessage) (json.RawMessage, bool) {
	fitted, lost := sanitizeSchema(value)
	if fitted == nil {
		return nil, lost
	}
	kind := jsonrpc.MemberOf(fitted, "type")
	if string(kind) == `"object"` {
		return fitted, lost
	}
	typed, err := jsonrpc.SetMember(fitted, "type", json.RawMessage(`"object"`))
	if err != nil { // it has been split before
		return nil, true
	}
	return typed, lost || kind != nil && !isNull(kind)
}

// sanitizeOutput is a sanitizer for an outputSchema; it drops a schema that does not compile.
// Clients compile all schemas of a list, and drop the whole list if one does not compile.
// It returns true if information of the value was lost.
func sanitizeOutput(value json.RawMessage) (json.RawMessage, bool) {
	fitted, lost := sanitizeSchema(value)
	if fitted == nil {
		return nil, lost
	}
	d := schemaDocument{named: bytes.Contains(fitted, []byte(`"$id"`))}
	if json.Unmarshal(fitted, &d.root) != nil || !d.canCompile(d.root) {
		return nil, true
	}
	return fitted, lost
}

// legacyTool returns a tool's definition for clients of legacy versions, in which
// structured results must be objects; in the modern version they may be any value.
func legacyTool(definition json.RawMessage) json.RawMessage {
	if !bytes.Contains(definition, []byte(`"outputSchema"`)) {
		return definition
	}
	all, err := jsonrpc.Members(definition)
	if err != nil { // it was split before
		return definition
	}
	return replaceMembers(definition, all, func(m jsonrpc.Member) json.RawMessage {
		if m.Name == "outputSchema" && string(jsonrpc.MemberOf(m.Value, "type")) != `"object"` {
			return nil
		}
		return m.Value
	})
}

// sanitizeSchema is a sanitizer that drops a schema that is no object, and invalid
// properties. It returns true if information was lost.
func sanitizeSchema(value json.RawMessage) (json.RawMessage, bool) {
	return keepMembers(map[string]sanitizer{"properties": sanitizeProperties, "required": keepList(keepText)})(value)
}

// sanitizeProperties makes the schema of each property an object: true becomes {}, false
// becomes {"not":{}}.
func sanitizeProperties(value json.RawMessage) (json.RawMessage, bool) {
	if value[0] != '{' {
		return nil, !isNull(value)
	}
	all, err := jsonrpc.Members(value)
	if err != nil { // more than the limit
		return value, false
	}
	lost := false
	value = replaceMembers(value, all, func(m jsonrpc.Member) json.RawMessage {
		switch {
		case m.Value[0] == '{':
			return m.Value
		case string(m.Value) == "false":
			return json.RawMessage(`{"not":{}}`)
		}
		lost = lost || string(m.Value) != "true" && !isNull(m.Value)
		return json.RawMessage(`{}`)
	})
	return value, lost
}

// A schemaDocument is a schema, checked for whether clients can compile it.
type schemaDocument struct {
	root  any
	named bool // parts have names ($id, $anchor)
}

// canCompile reports whether a part names only existing types and refers only to parts
// of the document.
func (d schemaDocument) canCompile(part any) bool {
	if list, ok := part.([]any); ok {
		return !slices.ContainsFunc(list, func(one any) bool { return !d.canCompile(one) })
	}
	schema, ok := part.(map[string]any)
	if !ok {
		return true
	}
	if kind, says := schema["type"]; says && !namesTypes(kind) {
		return false
	}
	if at, ok := schema["$ref"].(string); ok && !d.canResolve(at) {
		return false
	}
	for _, name := range []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"} {
		parts, _ := schema[name].(map[string]any)
		for _, one := range parts {
			if !d.canCompile(one) {
				return false
			}
		}
	}
	for _, name := range []string{"items", "prefixItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else", "allOf", "anyOf", "oneOf"} {
		if !d.canCompile(schema[name]) {
			return false
		}
	}
	return true
}

// namesTypes reports whether the value of a type member is a type name of JSON Schema
// or a list of such names.
func namesTypes(value any) bool {
	switch value := value.(type) {
	case string:
		return slices.Contains([]string{"string", "number", "integer", "boolean", "object", "array", "null"}, value)
	case []any:
		return !slices.ContainsFunc(value, func(one any) bool { name, ok := one.(string); return !ok || !namesTypes(name) })
	}
	return false
}

// canResolve reports whether a reference leads to a part of the document, as far as that is
// known if parts have names.
func (d schemaDocument) canResolve(reference string) bool {
	pointer, ok := strings.CutPrefix(reference, "#/")
	if !ok {
		return d.named || strings.HasPrefix(reference, "#")
	}
	pointer, err := url.PathUnescape(pointer)
	at := d.root
	for step := range strings.SplitSeq(pointer, "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch value := at.(type) {
		case map[string]any:
			at = value[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(value) {
				return false
			}
			at = value[n]
		default:
			return false
		}
		if at == nil {
			return d.named
		}
	}
	return err == nil
}
