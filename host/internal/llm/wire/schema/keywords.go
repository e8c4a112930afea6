package schema

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// typeKeywords lists the keywords that restrict only values of one type.
func typeKeywords(typ string) []string {
	switch typ {
	case "object":
		return []string{"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "dependentRequired", "dependentSchemas"}
	case "array":
		return []string{"items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"}
	case "string":
		return []string{"pattern", "minLength", "maxLength", "format", "contentEncoding", "contentMediaType", "contentSchema"}
	case "number", "integer":
		return []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	}
	return nil
}

// possibleTypes returns the types that a schema describes: the declared types, or else
// the types of its values, or else the types to which its keywords apply. None means
// any type.
func possibleTypes(s *tree.Value) []string {
	if names := declaredTypes(s); len(names) > 0 {
		return names
	}
	values := s.Get("enum").PeekItems()
	if c := s.Get("const"); c != nil {
		values = []*tree.Value{c}
	}
	var names []string
	for _, v := range values {
		if name := typeOf(v); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return names
	}
	for _, typ := range []string{"object", "array", "string", "number"} {
		if slices.ContainsFunc(typeKeywords(typ), func(word string) bool { return s.Get(word) != nil }) {
			return []string{typ}
		}
	}
	return nil
}

// typeOf returns the JSON Schema type of a value; integer for a number without a dot and
// exponent.
func typeOf(v *tree.Value) string {
	switch {
	case v.Is(tree.Object):
		return "object"
	case v.Is(tree.Array):
		return "array"
	case v.Is(tree.String):
		return "string"
	case v.Is(tree.Bool):
		return "boolean"
	case v.Is(tree.Number):
		if strings.ContainsAny(v.Text, ".eE") {
			return "number"
		}
		return "integer"
	}
	return "null"
}

// splitTypes returns a schema for each of the types names of s, with the keywords and
// enum values of s that apply to the type. A type without any of the enum values is left
// out.
func splitTypes(s *tree.Value, names []string) []*tree.Value {
	var branches []*tree.Value
	for _, name := range names {
		b := tree.Obj("type", tree.Str(name))
		for _, m := range s.Members {
			switch {
			case slices.Contains([]string{"type", "title", "description", "$defs", "definitions", "default"}, m.Name):
			case m.Name == "enum":
				var values []*tree.Value
				for _, v := range m.Value.Items {
					if is := typeOf(v); is == name || is == "integer" && name == "number" {
						values = append(values, v.Clone())
					}
				}
				b.Set("enum", tree.List(values...))
			case keywordType(m.Name) == "" || slices.Contains(typeKeywords(name), m.Name):
				b.Set(m.Name, m.Value.Clone())
			}
		}
		if values := b.Get("enum"); values == nil || len(values.Items) > 0 {
			branches = append(branches, b)
		}
	}
	return branches
}

// keywordType returns the type whose values a keyword restricts; "": of all types.
func keywordType(word string) string {
	for _, typ := range []string{"object", "array", "string", "number"} {
		if slices.Contains(typeKeywords(typ), word) {
			return typ
		}
	}
	return ""
}

// acceptsNull reports whether a schema of the document root accepts null. It also
// reports true if it cannot tell: deeper than 20 levels, or for a reference without a
// target.
func acceptsNull(s, root *tree.Value, depth int) bool {
	if depth > 20 || acceptsAnything(s) {
		return true
	}
	if ref := s.Get("$ref"); ref.Is(tree.String) && strings.HasPrefix(ref.Text, "#") {
		if target := root.At(ref.Text[1:]); target != nil && !acceptsNull(target, root, depth+1) {
			return false
		}
	}
	null := func(v *tree.Value) bool { return v.Is(tree.Null) }
	if c := s.Get("const"); c != nil && !null(c) {
		return false
	}
	if e := s.Get("enum"); e.Is(tree.Array) && !slices.ContainsFunc(e.Items, null) {
		return false
	}
	if names := declaredTypes(s); len(names) > 0 && !slices.Contains(names, "null") && !s.Get("nullable").True() {
		return false
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if list := s.Get(word); list.Is(tree.Array) && !slices.ContainsFunc(list.Items, func(b *tree.Value) bool { return acceptsNull(b, root, depth+1) }) {
			return false
		}
	}
	if list := s.Get("allOf"); list.Is(tree.Array) && slices.ContainsFunc(list.Items, func(b *tree.Value) bool { return !acceptsNull(b, root, depth+1) }) {
		return false
	}
	return true
}

// isFreeForm reports whether a schema is an object without declared member names.
func isFreeForm(s *tree.Value) bool {
	return slices.Contains(possibleTypes(s), "object") && len(s.Get("properties").PeekMembers()) == 0 && !s.Get("additionalProperties").False()
}
