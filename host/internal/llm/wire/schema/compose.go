package schema

import (
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// joined returns s with its allOf in it, where one schema can say the same as
// all together. What cannot be joined is lost.
func (w *writer) joined(s *tree.Value, at string) *tree.Value {
	list := s.Get("allOf")
	if !list.Is(tree.Array) {
		return s
	}
	out := s.Clone()
	out.Delete("allOf")
	whole := true
	for i, b := range list.Items {
		found := w.leaf(b)
		if sum, ok := merge(out, found); ok && found.Get("allOf") == nil {
			out = sum
			continue
		}
		whole = false
		w.losses.Lose(llm.Index(at+"/allOf", i), "this schema cannot be merged with the schemas next to it, and the vendor has no allOf")
	}
	why := "the schemas of allOf were merged"
	if !whole {
		why = "the other schemas of allOf were merged"
	}
	w.losses.Carry(at, why, out)
	return out
}

// choice returns the branches of s if it is only a choice, and the keywords next to
// it. These move into the branches; if that is not possible, the choice is lost.
func (w *writer) choice(s *tree.Value, at string) (branches []*tree.Value, rest *tree.Value, where string) {
	rest = s.Clone()
	word := ""
	for _, name := range []string{"anyOf", "oneOf"} {
		if s.Get(name) == nil {
			continue
		}
		rest.Delete(name)
		if !s.Get(name).Is(tree.Array) || len(s.Get(name).Items) == 0 || word != "" {
			w.losses.Lose(at+"/"+name, "a second choice at the same place cannot be expressed")
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
			found := w.leaf(b)
			sum, ok := merge(found, common)
			if !ok || onlyRequires(found) {
				w.losses.Lose(at+"/"+word, "the choice was removed, because the keywords next to it cannot be merged into it")
				return nil, rest, ""
			}
			b = sum
		}
		branches = append(branches, b)
	}
	for _, m := range common.Members {
		rest.Delete(m.Name)
		w.losses.Carry(llm.Key(at, m.Name), "moved into each alternative", nil)
	}
	return branches, rest, at + "/" + word
}

// onlyRequires reports whether a branch only lists members that must occur together;
// then the choice repeats all others.
func onlyRequires(s *tree.Value) bool {
	return s.Is(tree.Object) && len(s.Members) == 1 && s.Members[0].Name == "required"
}

// tuple makes one schema of the items of a tuple: any of its.
func tuple(s *tree.Value) *tree.Value {
	var branches []*tree.Value
	add := func(v *tree.Value) {
		if !slices.ContainsFunc(branches, func(b *tree.Value) bool { return Same(b, v) }) {
			branches = append(branches, v)
		}
	}
	for _, item := range s.Get("prefixItems").All() {
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
