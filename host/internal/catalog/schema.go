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

// fitInput is the form of an inputSchema: of an object, which arguments always
// are, with schemas that are objects themselves.
func fitInput(value json.RawMessage) (json.RawMessage, bool) {
	fitted, lost := fitSchema(value)
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

// fitOutput is the form of an outputSchema. Clients compile each of a list, and
// have none of the list if one cannot be.
func fitOutput(value json.RawMessage) (json.RawMessage, bool) {
	fitted, lost := fitSchema(value)
	if fitted == nil {
		return nil, lost
	}
	d := document{named: bytes.Contains(fitted, []byte(`"$id"`))}
	if json.Unmarshal(fitted, &d.root) != nil || !d.compiles(d.root) {
		return nil, true
	}
	return fitted, lost
}

// legacyTool is a tool's definition as clients of the legacy versions can read it:
// to them results are objects, and to those of the modern one anything.
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

// fitSchema is the form of both.
func fitSchema(value json.RawMessage) (json.RawMessage, bool) {
	return members(map[string]form{"properties": fitProperties, "required": listOf(isText)})(value)
}

// fitProperties has an object for each property: as schemas true says no more
// than {} does, and false no less than {"not":{}}.
func fitProperties(value json.RawMessage) (json.RawMessage, bool) {
	if value[0] != '{' {
		return nil, !isNull(value)
	}
	all, err := jsonrpc.Members(value)
	if err != nil { // there are more than are looked at
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

// A document is a schema of which it is to be known whether clients can compile it.
type document struct {
	root  any
	named bool // parts of it have names of their own
}

// compiles reports whether a part names no type that there is not, and refers to
// nothing but parts of the document.
func (d document) compiles(part any) bool {
	if list, ok := part.([]any); ok {
		return !slices.ContainsFunc(list, func(one any) bool { return !d.compiles(one) })
	}
	schema, ok := part.(map[string]any)
	if !ok {
		return true
	}
	if kind, says := schema["type"]; says && !namesTypes(kind) {
		return false
	}
	if at, ok := schema["$ref"].(string); ok && !d.leads(at) {
		return false
	}
	for _, name := range []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"} {
		parts, _ := schema[name].(map[string]any)
		for _, one := range parts {
			if !d.compiles(one) {
				return false
			}
		}
	}
	for _, name := range []string{"items", "prefixItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else", "allOf", "anyOf", "oneOf"} {
		if !d.compiles(schema[name]) {
			return false
		}
	}
	return true
}

func namesTypes(value any) bool {
	switch value := value.(type) {
	case string:
		return slices.Contains([]string{"string", "number", "integer", "boolean", "object", "array", "null"}, value)
	case []any:
		return !slices.ContainsFunc(value, func(one any) bool { name, ok := one.(string); return !ok || !namesTypes(name) })
	}
	return false
}

// leads reports whether a reference leads to a part of the document, as far as
// can be told where parts have names.
func (d document) leads(reference string) bool {
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
