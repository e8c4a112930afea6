package schema

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// only lists the keywords that say something of values of one type alone.
func only(typ string) []string {
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

// kinds are the types a schema is about: those that it names, else those of
// its values, else what its keywords are about. None: of any.
func kinds(s *tree.Value) []string {
	if names := types(s); len(names) > 0 {
		return names
	}
	values := s.Get("enum").All()
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
		if slices.ContainsFunc(only(typ), func(word string) bool { return s.Get(word) != nil }) {
			return []string{typ}
		}
	}
	return nil
}

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

// split makes one schema for each type of several.
func split(s *tree.Value, names []string) []*tree.Value {
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
			case about(m.Name) == "" || slices.Contains(only(name), m.Name):
				b.Set(m.Name, m.Value.Clone())
			}
		}
		if values := b.Get("enum"); values == nil || len(values.Items) > 0 {
			branches = append(branches, b)
		}
	}
	return branches
}

// about is the type a keyword says something of; "": of any.
func about(word string) string {
	for _, typ := range []string{"object", "array", "string", "number"} {
		if slices.Contains(only(typ), word) {
			return typ
		}
	}
	return ""
}

// takesNull reports whether null is a value of the schema.
func takesNull(s, root *tree.Value, depth int) bool {
	if depth > 20 || anything(s) {
		return true
	}
	if ref := s.Get("$ref"); ref.Is(tree.String) && strings.HasPrefix(ref.Text, "#") {
		if target := root.At(ref.Text[1:]); target != nil && !takesNull(target, root, depth+1) {
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
	if names := types(s); len(names) > 0 && !slices.Contains(names, "null") && !s.Get("nullable").True() {
		return false
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if list := s.Get(word); list.Is(tree.Array) && !slices.ContainsFunc(list.Items, func(b *tree.Value) bool { return takesNull(b, root, depth+1) }) {
			return false
		}
	}
	if list := s.Get("allOf"); list.Is(tree.Array) && slices.ContainsFunc(list.Items, func(b *tree.Value) bool { return !takesNull(b, root, depth+1) }) {
		return false
	}
	return true
}

// freeForm reports whether a schema is of an object whose members have no
// names of their own.
func freeForm(s *tree.Value) bool {
	return slices.Contains(kinds(s), "object") && len(s.Get("properties").Each()) == 0 && !s.Get("additionalProperties").False()
}
