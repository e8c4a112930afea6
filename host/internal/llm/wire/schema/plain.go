package schema

import (
	"encoding/json"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// Plain writes a schema of arguments as OpenAI and Anthropic take it when
// they are not asked to hold their model to it: JSON Schema, whose top is an
// object that is no choice between others. What is not 2020-12 is written as
// 2020-12 says it.
func Plain(raw json.RawMessage, vendor string, losses *llm.Losses) *tree.Value {
	w := input(raw, "/inputSchema", losses)
	top := w.top(vendor)
	w.plain(top, w.at)
	if top.Get("properties") == nil {
		empty := tree.Obj()
		top.Set("properties", empty)
		losses.Carry(w.at+"/properties", "an empty properties object was added", empty)
	}
	return top
}

// top returns a copy of the root that is an object.
func (w *writer) top(vendor string) *tree.Value {
	root := w.root
	if !root.Is(tree.Object) {
		made := tree.Obj("type", tree.Str("object"))
		if root == nil || anything(root) {
			w.losses.Carry(w.at, "arguments must be an object", made)
		} else {
			w.losses.Change(w.at, "arguments must be an object", made)
		}
		return made.Clone()
	}
	top := root.Clone()
	if ref := top.Get("$ref"); ref.Is(tree.String) {
		top = w.topRef(top, ref.Text)
	}
	if names := types(top); !slices.Equal(names, []string{"object"}) {
		object := tree.Str("object")
		top.Set("type", object)
		if len(names) == 0 || slices.Contains(names, "object") {
			w.losses.Carry(w.at+"/type", "arguments must be an object", object)
		} else {
			w.losses.Change(w.at+"/type", "arguments must be an object", object)
		}
	}
	w.topChoices(top, vendor)
	for _, name := range []string{"enum", "not", "const"} {
		if top.Get(name) != nil {
			top.Delete(name)
			w.losses.Lose(llm.Key(w.at, name), vendor+" does not support this keyword at the top level")
		}
	}
	return top
}

// topRef puts the definition in the place of a reference at the top.
func (w *writer) topRef(top *tree.Value, ref string) *tree.Value {
	seen := []string{}
	for {
		found, _ := w.target(ref)
		if !found.Is(tree.Object) || slices.Contains(seen, ref) || found == w.root {
			top.Delete("$ref")
			w.losses.Lose(w.at+"/$ref", "the reference has no target in this schema")
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
			w.losses.Carry(w.at, "the reference was replaced by its definition", top.Clone())
			return top
		}
		ref = next.Text
	}
}

// topChoices makes one object of a choice between objects: it has the members
// of all, and requires what all require.
func (w *writer) topChoices(top *tree.Value, vendor string) {
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
		w.widen(top, branches.Items)
	}
	if changed {
		w.losses.Change(w.at, vendor+" supports no choice at the top level; the properties of all alternatives were merged", top.Clone())
	}
}

func (w *writer) resolve(s *tree.Value) *tree.Value {
	if ref := s.Get("$ref"); ref.Is(tree.String) && len(s.Members) == 1 {
		if found, _ := w.target(ref.Text); found != nil && found.Get("$ref") == nil {
			return found
		}
	}
	return s
}

// leaf resolves a reference until the target contains no reference itself, so that
// resolution ends.
func (w *writer) leaf(s *tree.Value) *tree.Value {
	found := w.resolve(s)
	if refers(found) {
		return s
	}
	return found
}

func refers(v *tree.Value) bool {
	return v.Get("$ref") != nil || slices.ContainsFunc(v.All(), refers) ||
		slices.ContainsFunc(v.Each(), func(m tree.Member) bool { return refers(m.Value) })
}

// widen gives an object the members of the branches, each of which becomes a
// choice where they differ.
func (w *writer) widen(top *tree.Value, branches []*tree.Value) {
	properties := top.Get("properties").Clone()
	if properties == nil {
		properties = tree.Obj()
	}
	own := properties.Clone()
	var required []string
	for i, b := range branches {
		b = w.resolve(b)
		for _, p := range b.Get("properties").Fields() {
			switch have := properties.Get(p.Name); {
			case have == nil:
				properties.Set(p.Name, p.Value.Clone())
			case Same(have, p.Value) || own.Get(p.Name) != nil:
			case have.Is(tree.Object) && len(have.Members) == 1 && have.Get("anyOf") != nil:
				have.Get("anyOf").Items = append(have.Get("anyOf").Items, p.Value.Clone())
			default:
				properties.Set(p.Name, tree.Obj("anyOf", tree.List(have, p.Value.Clone())))
			}
		}
		var names []string
		for _, name := range b.Get("required").List() {
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
	for _, name := range top.Get("required").List() {
		required = append(required, name.Text)
	}
	slices.Sort(required)
	if required = slices.Compact(required); len(required) > 0 {
		top.Set("required", tree.Strs(required...))
	}
}

// plain writes what older drafts and OpenAPI say as 2020-12 does, in place.
func (w *writer) plain(s *tree.Value, at string) {
	if items := s.Get("items"); items.Is(tree.Array) {
		s.Delete("items")
		s.Set("prefixItems", items)
		w.losses.Carry(at+"/items", "moved to prefixItems", nil)
		w.losses.Carry(at+"/prefixItems", "moved from items", items)
		if more := s.Get("additionalItems"); more != nil {
			s.Delete("additionalItems")
			s.Set("items", more)
			w.losses.Carry(at+"/additionalItems", "moved to items", nil)
			w.losses.Carry(at+"/items", "moved from additionalItems", more)
		}
	}
	if slices.Contains(types(s), "array") && s.Get("items") == nil {
		any := tree.Obj()
		s.Set("items", any)
		w.losses.Carry(at+"/items", "an items schema that allows any value was added", any)
	}
	w.exclusive(s, at, "minimum", "exclusiveMinimum")
	w.exclusive(s, at, "maximum", "exclusiveMaximum")
	if flag := s.Get("nullable"); flag.Is(tree.Bool) {
		names := types(s)
		s.Delete("nullable")
		w.losses.Carry(at+"/nullable", "nullable became the type null", nil)
		if flag.True() && len(names) > 0 && !slices.Contains(names, "null") {
			s.Set("type", typed(append(names, "null")))
			w.losses.Carry(at+"/type", "nullable became the type null", s.Get("type"))
			if values := s.Get("enum"); values.Is(tree.Array) && !slices.ContainsFunc(values.Items, func(v *tree.Value) bool { return v.Is(tree.Null) }) {
				values.Items = append(values.Items, &tree.Value{})
				w.losses.Carry(at+"/enum", "nullable became the type null", values)
			}
		}
	}
	subschemas(s, at, w.plain)
}

// exclusive converts a limit with an exclusive flag (draft 4) into a limit.
func (w *writer) exclusive(s *tree.Value, at, limit, exclusive string) {
	flag := s.Get(exclusive)
	if !flag.Is(tree.Bool) {
		return
	}
	s.Delete(exclusive)
	if value := s.Get(limit); flag.True() && value != nil {
		s.Delete(limit)
		s.Set(exclusive, value)
		w.losses.Carry(at+"/"+limit, "replaced by "+exclusive, nil)
		w.losses.Carry(at+"/"+exclusive, "the exclusive limit, as a number", value)
		return
	}
	w.losses.Carry(at+"/"+exclusive, "false has no effect", nil)
}
