// Package schema converts a JSON Schema into the form that a vendor accepts, and
// reports the losses. The pointers of a report refer to MCP's definition of the tool:
// /inputSchema/properties/path/pattern.
//
// Plain keeps everything except what vendors refuse at the top level. Strict writes
// the form for strict mode, which constrains the model; Restore reverts it in the
// returned arguments. Subset writes Gemini's subset, FromSubset reads it.
//
// A converted schema accepts everything that the original accepts: a loss makes it
// wider, never narrower, and the tool still checks its arguments. Only Strict, which
// is reverted, and a truncated recursion are narrower.
package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// maxInlinedValues bounds a schema with inlined references, in values.
const maxInlinedValues = 5_000

// converter holds the state of the conversion of one schema. The parameter at of its
// methods is the JSON pointer of a schema, for losses.
type converter struct {
	root   *tree.Value // the original
	at     string      // pointer to the original in the tool's definition
	losses *llm.Losses
	size   int           // values converted so far, bounded by maxInlinedValues
	open   []*tree.Value // definitions that are being inlined
}

// newConverter returns a converter for the schema raw, whose pointer in the tool's
// definition is at. Without a schema its root is nil.
func newConverter(raw json.RawMessage, at string, losses *llm.Losses) *converter {
	return &converter{root: tree.Raw(raw), at: at, losses: losses}
}

// eachSubschema visits the direct subschemas of v, with their pointers.
func eachSubschema(v *tree.Value, at string, visit func(s *tree.Value, at string)) {
	for _, m := range v.Members {
		here := llm.AppendKey(at, m.Name)
		switch m.Name {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			if m.Value.Is(tree.Object) {
				for _, p := range m.Value.Members {
					visit(p.Value, llm.AppendKey(here, p.Name))
				}
			}
		case "allOf", "anyOf", "oneOf", "prefixItems", "items":
			for i, s := range m.Value.Items {
				visit(s, llm.AppendIndex(here, i))
			}
			if m.Name == "items" && m.Value.Is(tree.Object) {
				visit(m.Value, here)
			}
		case "additionalProperties", "additionalItems", "contains", "propertyNames", "not",
			"if", "then", "else", "unevaluatedItems", "unevaluatedProperties":
			if m.Value.Is(tree.Object) {
				visit(m.Value, here)
			}
		}
	}
}

// declaredTypes returns the types in the keyword type; nil: the type is not restricted.
func declaredTypes(s *tree.Value) []string {
	t := s.Get("type")
	if t.Is(tree.String) {
		return []string{t.Text}
	}
	var names []string
	if t.Is(tree.Array) {
		for _, item := range t.Items {
			if item.Is(tree.String) && !slices.Contains(names, item.Text) {
				names = append(names, item.Text)
			}
		}
	}
	return names
}

// typeValue returns types as the value of the keyword type: a string for one, else an
// array.
func typeValue(names []string) *tree.Value {
	if len(names) == 1 {
		return tree.Str(names[0])
	}
	return tree.Strs(names...)
}

// lookupRef returns the target schema of a $ref, and its pointer in the tool's
// definition; nil if it is not in this document.
func (w *converter) lookupRef(ref string) (*tree.Value, string) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, ""
	}
	pointer = strings.ReplaceAll(strings.ReplaceAll(pointer, "%25", "%"), "%24", "$")
	found := w.root.At(pointer)
	if !found.Is(tree.Object) && !found.Is(tree.Bool) {
		return nil, ""
	}
	return found, w.at + pointer
}

// acceptsAnything reports whether a schema accepts every value: true, or an object
// with nothing but descriptions.
func acceptsAnything(s *tree.Value) bool {
	if s.True() {
		return true
	}
	return s.Is(tree.Object) && !slices.ContainsFunc(s.Members, func(m tree.Member) bool {
		return !slices.Contains([]string{"title", "description", "default", "examples", "$comment", "$defs", "definitions", "$schema", "$id", "deprecated", "readOnly", "writeOnly"}, m.Name)
	})
}

// merge returns one schema that accepts what both a and b accept: a copy of a with the
// keywords of b. It returns false if their keywords differ in a way that it cannot
// combine.
func merge(a, b *tree.Value) (*tree.Value, bool) {
	if !a.Is(tree.Object) || !b.Is(tree.Object) || isClosed(a) || isClosed(b) {
		return nil, false
	}
	out := a.Clone()
	for _, m := range b.Members {
		have := out.Get(m.Name)
		switch {
		case have == nil:
			out.Set(m.Name, m.Value.Clone())
		case Equal(have, m.Value):
		case m.Name == "required" && have.Is(tree.Array) && m.Value.Is(tree.Array):
			for _, name := range m.Value.Items {
				if !slices.ContainsFunc(have.Items, func(h *tree.Value) bool { return h.Text == name.Text }) {
					have.Items = append(have.Items, name)
				}
			}
		case m.Name == "properties" && have.Is(tree.Object) && m.Value.Is(tree.Object):
			for _, p := range m.Value.Members {
				if known := have.Get(p.Name); known != nil && !Equal(known, p.Value) {
					return nil, false
				}
				have.Set(p.Name, p.Value.Clone())
			}
		case m.Name == "description" || m.Name == "title" || m.Name == "$comment":
		default:
			return nil, false
		}
	}
	return out, true
}

// isClosed reports whether a schema has a keyword whose meaning changes with the keywords
// next to it, such as additionalProperties or $ref, so that nothing may be merged into it.
func isClosed(s *tree.Value) bool {
	for _, name := range []string{"additionalProperties", "unevaluatedProperties", "patternProperties", "$ref", "$dynamicRef", "if"} {
		if v := s.Get(name); v != nil && !v.True() {
			return true
		}
	}
	return false
}

// Equal reports whether two values are equal, in any order of members.
func Equal(a, b *tree.Value) bool {
	if a == nil || b == nil || a.Kind != b.Kind || a.Text != b.Text || len(a.Items) != len(b.Items) || len(a.Members) != len(b.Members) {
		return a == b
	}
	for i := range a.Items {
		if !Equal(a.Items[i], b.Items[i]) {
			return false
		}
	}
	for _, m := range a.Members {
		if !Equal(m.Value, b.Get(m.Name)) {
			return false
		}
	}
	return true
}
