package schema

import (
	"encoding/json"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// Plain converts a tool's input schema into the form that OpenAI and Anthropic accept
// without strict mode: JSON Schema 2020-12 whose top level has the type object and neither
// anyOf, oneOf nor allOf. vendor is a name for the losses.
func Plain(raw json.RawMessage, vendor string, losses *llm.Losses) *tree.Value {
	w := newConverter(raw, "/inputSchema", losses)
	top := w.topObject(vendor)
	w.modernize(top, w.at)
	if top.Get("properties") == nil {
		empty := tree.Obj()
		top.Set("properties", empty)
		losses.AddEquivalent(w.at+"/properties", "an empty properties object was added", empty)
	}
	return top
}

// topObject returns a copy of the root as a schema of the type object, without a
// reference, choice, enum, not or const at its top level.
func (w *converter) topObject(vendor string) *tree.Value {
	root := w.root
	if !root.Is(tree.Object) {
		made := tree.Obj("type", tree.Str("object"))
		if root == nil || acceptsAnything(root) {
			w.losses.AddEquivalent(w.at, "arguments must be an object", made)
		} else {
			w.losses.AddChanged(w.at, "arguments must be an object", made)
		}
		return made.Clone()
	}
	top := root.Clone()
	if ref := top.Get("$ref"); ref.Is(tree.String) {
		top = w.inlineTopRef(top, ref.Text)
	}
	if names := declaredTypes(top); !slices.Equal(names, []string{"object"}) {
		object := tree.Str("object")
		top.Set("type", object)
		if len(names) == 0 || slices.Contains(names, "object") {
			w.losses.AddEquivalent(w.at+"/type", "arguments must be an object", object)
		} else {
			w.losses.AddChanged(w.at+"/type", "arguments must be an object", object)
		}
	}
	w.mergeTopChoices(top, vendor)
	for _, name := range []string{"enum", "not", "const"} {
		if top.Get(name) != nil {
			top.Delete(name)
			w.losses.AddLost(llm.AppendKey(w.at, name), vendor+" does not support this keyword at the top level")
		}
	}
	return top
}

// inlineTopRef returns top with its $ref replaced by the members of the definition,
// through further references; without $ref if it has no target.
func (w *converter) inlineTopRef(top *tree.Value, ref string) *tree.Value {
	seen := []string{}
	for {
		found, _ := w.lookupRef(ref)
		if !found.Is(tree.Object) || slices.Contains(seen, ref) || found == w.root {
			top.Delete("$ref")
			w.losses.AddLost(w.at+"/$ref", "the reference has no target in this schema")
			return top
		}
		seen = append(seen, ref)
		next := found.Get("$ref")
		if !next.Is(tree.String) {
			for _, m := range found.Members {
				if top.Get(m.Name) == nil {
					top.Set(m.Name, m.Value.Clone())
				}
			}
			top.Delete("$ref")
			w.losses.AddEquivalent(w.at, "the reference was replaced by its definition", top.Clone())
			return top
		}
		ref = next.Text
	}
}

// mergeTopChoices replaces, in place, allOf, anyOf and oneOf of top by the members of all
// branches. For anyOf and oneOf, only the members that all branches require are required.
func (w *converter) mergeTopChoices(top *tree.Value, vendor string) {
	changed := false
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		branches := top.Get(name)
		if branches == nil {
			continue
		}
		top.Delete(name)
		changed = true
		if name == "allOf" {
			for _, b := range branches.Items {
				if joined, ok := merge(top, w.resolve(b)); ok {
					*top = *joined
				}
			}
			continue
		}
		w.addBranchMembers(top, branches.Items)
	}
	if changed {
		w.losses.AddChanged(w.at, vendor+" supports no choice at the top level; the properties of all alternatives were merged", top.Clone())
	}
}

// resolve returns the schema that s refers to, if s has only a $ref and its target is
// no reference itself; otherwise s.
func (w *converter) resolve(s *tree.Value) *tree.Value {
	if ref := s.Get("$ref"); ref.Is(tree.String) && len(s.Members) == 1 {
		if found, _ := w.lookupRef(ref.Text); found != nil && found.Get("$ref") == nil {
			return found
		}
	}
	return s
}

// resolveLeaf resolves a reference if its target contains no further reference, so
// that resolving ends.
func (w *converter) resolveLeaf(s *tree.Value) *tree.Value {
	found := w.resolve(s)
	if hasReference(found) {
		return s
	}
	return found
}

// hasReference reports whether a value contains a $ref at any depth.
func hasReference(v *tree.Value) bool {
	return v.Get("$ref") != nil || slices.ContainsFunc(v.PeekItems(), hasReference) ||
		slices.ContainsFunc(v.PeekMembers(), func(m tree.Member) bool { return hasReference(m.Value) })
}

// addBranchMembers adds the members of the branches to an object. The object's own
// members take precedence. A member with different schemas in the branches becomes a
// choice. A member is required if the object or every branch requires it. additionalProperties:
// false and unevaluatedProperties are dropped.
func (w *converter) addBranchMembers(top *tree.Value, branches []*tree.Value) {
	properties := top.Get("properties").Clone()
	if properties == nil {
		properties = tree.Obj()
	}
	own := properties.Clone()
	var required []string
	for i, b := range branches {
		b = w.resolve(b)
		for _, p := range b.Get("properties").TakeMembers() {
			switch have := properties.Get(p.Name); {
			case have == nil:
				properties.Set(p.Name, p.Value.Clone())
			case Equal(have, p.Value) || own.Get(p.Name) != nil:
			case have.Is(tree.Object) && len(have.Members) == 1 && have.Get("anyOf") != nil:
				have.Get("anyOf").Items = append(have.Get("anyOf").Items, p.Value.Clone())
			default:
				properties.Set(p.Name, tree.Obj("anyOf", tree.List(have, p.Value.Clone())))
			}
		}
		var names []string
		for _, name := range b.Get("required").TakeItems() {
			names = append(names, name.Text)
		}
		if i == 0 {
			required = names
		} else {
			required = slices.DeleteFunc(required, func(name string) bool { return !slices.Contains(names, name) })
		}
	}
	top.Set("properties", properties)
	if top.Get("additionalProperties").False() || top.Get("unevaluatedProperties") != nil {
		top.Delete("additionalProperties")
		top.Delete("unevaluatedProperties")
	}
	for _, name := range top.Get("required").TakeItems() {
		required = append(required, name.Text)
	}
	slices.Sort(required)
	if required = slices.Compact(required); len(required) > 0 {
		top.Set("required", tree.Strs(required...))
	}
}

// modernize rewrites keywords of older drafts and of OpenAPI as in 2020-12, in place.
func (w *converter) modernize(s *tree.Value, at string) {
	if items := s.Get("items"); items.Is(tree.Array) {
		s.Delete("items")
		s.Set("prefixItems", items)
		w.losses.AddEquivalent(at+"/items", "moved to prefixItems", nil)
		w.losses.AddEquivalent(at+"/prefixItems", "moved from items", items)
		if more := s.Get("additionalItems"); more != nil {
			s.Delete("additionalItems")
			s.Set("items", more)
			w.losses.AddEquivalent(at+"/additionalItems", "moved to items", nil)
			w.losses.AddEquivalent(at+"/items", "moved from additionalItems", more)
		}
	}
	if slices.Contains(declaredTypes(s), "array") && s.Get("items") == nil {
		any := tree.Obj()
		s.Set("items", any)
		w.losses.AddEquivalent(at+"/items", "an items schema that allows any value was added", any)
	}
	w.modernizeExclusive(s, at, "minimum", "exclusiveMinimum")
	w.modernizeExclusive(s, at, "maximum", "exclusiveMaximum")
	if flag := s.Get("nullable"); flag.Is(tree.Bool) {
		names := declaredTypes(s)
		s.Delete("nullable")
		w.losses.AddEquivalent(at+"/nullable", "nullable became the type null", nil)
		if flag.True() && len(names) > 0 && !slices.Contains(names, "null") {
			s.Set("type", typeValue(append(names, "null")))
			w.losses.AddEquivalent(at+"/type", "nullable became the type null", s.Get("type"))
			if values := s.Get("enum"); values.Is(tree.Array) && !slices.ContainsFunc(values.Items, func(v *tree.Value) bool { return v.Is(tree.Null) }) {
				values.Items = append(values.Items, &tree.Value{})
				w.losses.AddEquivalent(at+"/enum", "nullable became the type null", values)
			}
		}
	}
	eachSubschema(s, at, w.modernize)
}

// modernizeExclusive converts the limit with a boolean flag exclusive (draft 4) into a
// number under the name exclusive.
func (w *converter) modernizeExclusive(s *tree.Value, at, limit, exclusive string) {
	flag := s.Get(exclusive)
	if !flag.Is(tree.Bool) {
		return
	}
	s.Delete(exclusive)
	if value := s.Get(limit); flag.True() && value != nil {
		s.Delete(limit)
		s.Set(exclusive, value)
		w.losses.AddEquivalent(at+"/"+limit, "replaced by "+exclusive, nil)
		w.losses.AddEquivalent(at+"/"+exclusive, "the exclusive limit, as a number", value)
		return
	}
	w.losses.AddEquivalent(at+"/"+exclusive, "false has no effect", nil)
}
