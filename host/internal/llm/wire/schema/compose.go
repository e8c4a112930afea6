package schema

import (
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// joinAllOf returns s without allOf: its branches are merged into a copy, and those that
// cannot be merged are reported as lost. Without allOf it returns s itself.
func (w *converter) joinAllOf(s *tree.Value, at string) *tree.Value {
	list := s.Get("allOf")
	if !list.Is(tree.Array) {
		return s
	}
	out := s.Clone()
	out.Delete("allOf")
	whole := true
	for i, b := range list.Items {
		found := w.resolveLeaf(b)
		if sum, ok := merge(out, found); ok && found.Get("allOf") == nil {
			out = sum
			continue
		}
		whole = false
		w.losses.AddLost(llm.AppendIndex(at+"/allOf", i), "this schema cannot be merged with the schemas next to it, and the vendor has no allOf")
	}
	why := "the schemas of allOf were merged"
	if !whole {
		why = "the other schemas of allOf were merged"
	}
	w.losses.AddEquivalent(at, why, out)
	return out
}

// distributeChoice splits a schema with anyOf or oneOf into its branches, into which the
// restricting keywords next to the choice are moved, and the rest, such as title and
// description. where is the pointer of the choice. If the keywords cannot be moved, the
// choice is reported as lost. Without a choice, branches is nil and rest the schema.
func (w *converter) distributeChoice(s *tree.Value, at string) (branches []*tree.Value, rest *tree.Value, where string) {
	rest = s.Clone()
	word := ""
	for _, name := range []string{"anyOf", "oneOf"} {
		if s.Get(name) == nil {
			continue
		}
		rest.Delete(name)
		if !s.Get(name).Is(tree.Array) || len(s.Get(name).Items) == 0 || word != "" {
			w.losses.AddLost(at+"/"+name, "a second choice at the same place cannot be expressed")
			continue
		}
		word = name
	}
	if word == "" {
		return nil, s, ""
	}
	common := tree.Obj()
	for _, m := range rest.Members {
		if !slices.Contains([]string{"title", "description", "default", "$defs", "definitions", "$schema", "$id", "$comment", "examples", "nullable", "deprecated"}, m.Name) {
			common.Set(m.Name, m.Value)
		}
	}
	for _, b := range s.Get(word).Items {
		if len(common.Members) > 0 {
			found := w.resolveLeaf(b)
			sum, ok := merge(found, common)
			if !ok || onlyRequires(found) {
				w.losses.AddLost(at+"/"+word, "the choice was removed, because the keywords next to it cannot be merged into it")
				return nil, rest, ""
			}
			b = sum
		}
		branches = append(branches, b)
	}
	for _, m := range common.Members {
		rest.Delete(m.Name)
		w.losses.AddEquivalent(llm.AppendKey(at, m.Name), "moved into each alternative", nil)
	}
	return branches, rest, at + "/" + word
}

// onlyRequires reports whether a branch has only the keyword required. Such a choice can
// be left out: the object has the members anyway.
func onlyRequires(s *tree.Value) bool {
	return s.Is(tree.Object) && len(s.Members) == 1 && s.Members[0].Name == "required"
}

// tupleItems returns one schema for all items of the tuple s: anyOf the schemas of its
// positions and of the items after them.
func tupleItems(s *tree.Value) *tree.Value {
	var branches []*tree.Value
	add := func(v *tree.Value) {
		if !slices.ContainsFunc(branches, func(b *tree.Value) bool { return Equal(b, v) }) {
			branches = append(branches, v)
		}
	}
	for _, item := range s.Get("prefixItems").PeekItems() {
		add(item)
	}
	switch items := s.Get("items"); {
	case items == nil || items.True():
		return tree.Obj()
	case items.Is(tree.Object):
		add(items)
	}
	if len(branches) == 1 {
		return branches[0]
	}
	return tree.Obj("anyOf", tree.List(branches...))
}
