package schema

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// isCyclic reports whether one of the definitions (the value of $defs) refers to itself,
// directly or through others.
func isCyclic(defs *tree.Value) bool {
	state := map[string]int{}
	var visit func(name string) bool
	var look func(v *tree.Value) bool
	look = func(v *tree.Value) bool {
		if ref := v.Get("$ref"); ref.Is(tree.String) && visit(tree.Unescape(strings.TrimPrefix(ref.Text, "#/$defs/"))) {
			return true
		}
		return slices.ContainsFunc(v.Items, look) || slices.ContainsFunc(v.Members, func(m tree.Member) bool { return look(m.Value) })
	}
	visit = func(name string) bool {
		if state[name] > 0 {
			return state[name] == 1
		}
		state[name] = 1
		if d := defs.Get(name); d != nil && look(d) {
			return true
		}
		state[name] = 2
		return false
	}
	return slices.ContainsFunc(defs.Members, func(m tree.Member) bool { return visit(m.Name) })
}

// exceededLimit returns a message about the first limit that a converted schema exceeds;
// "": none.
func (h StrictLimits) exceededLimit(s *tree.Value) string {
	members, values, bytes := 0, 0, 0
	var count func(s *tree.Value, depth int) int
	count = func(s *tree.Value, depth int) int {
		deepest := depth
		for _, p := range s.Get("properties").PeekMembers() {
			members++
			bytes += len(p.Name)
		}
		for _, d := range s.Get("$defs").PeekMembers() {
			bytes += len(d.Name)
		}
		for _, v := range append(slices.Clone(s.Get("enum").PeekItems()), s.Get("const")) {
			if v != nil {
				values++
				bytes += len(v.Text)
			}
		}
		below := depth
		if s.Get("properties") != nil || s.Get("items") != nil {
			below++
		}
		eachSubschema(s, "", func(sub *tree.Value, at string) {
			next := below
			if strings.HasPrefix(at, "/$defs") || strings.HasPrefix(at, "/anyOf") {
				next = depth
			}
			deepest = max(deepest, count(sub, next))
		})
		return deepest
	}
	depth := count(s, 0)
	switch {
	case h.members > 0 && members > h.members:
		return h.vendor + " allows at most 5000 properties in total"
	case h.depth > 0 && depth > h.depth:
		return h.vendor + " allows at most 10 levels of nesting"
	case h.values > 0 && values > h.values:
		return h.vendor + " allows at most 1000 enum values in total"
	case h.bytes > 0 && bytes > h.bytes:
		return h.vendor + " allows at most 120000 bytes of names and values"
	}
	return ""
}
