package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// Restore reverts in a call's arguments what Strict changed in the schema. It removes
// a null of an optional member that cannot be null, and decodes text that holds the
// JSON of a free-form object or of any value. raw is the tool's own schema. Arguments
// that are not JSON are returned unchanged.
func Restore(raw, args json.RawMessage) json.RawMessage {
	v, err := tree.Parse(args)
	if err != nil || len(raw) == 0 {
		return args
	}
	r := &restorer{root: tree.Raw(raw)}
	r.restore(r.root, v, 0)
	if !r.changed {
		return args
	}
	return v.JSON()
}

// restorer changes arguments that a model wrote for a converted schema into arguments for
// the original one.
type restorer struct {
	root    *tree.Value // the original schema
	changed bool        // whether an argument was changed
}

// parseJSONText parses a text as JSON; nil: it is not JSON.
func parseJSONText(text string) *tree.Value {
	v, err := tree.Parse([]byte(text))
	if err != nil {
		return nil
	}
	return v
}

// resolve returns the schema that s refers to within the document; s itself if it is no
// such reference. It returns nil if the target is not found or the references form a
// circle.
func (r *restorer) resolve(s *tree.Value) *tree.Value {
	for range 20 {
		ref := s.Get("$ref")
		if !ref.Is(tree.String) || !strings.HasPrefix(ref.Text, "#") {
			return s
		}
		s = r.root.At(ref.Text[1:])
	}
	return nil
}

// restore restores v, an argument at a place with the schema s, in place. It leaves v as
// it is deeper than 100 levels.
func (r *restorer) restore(s, v *tree.Value, depth int) {
	s = r.resolve(s)
	if s == nil || depth > 100 {
		return
	}
	if v.Is(tree.String) {
		r.restoreText(s, v)
		return
	}
	for _, b := range s.Get("allOf").PeekItems() {
		r.restore(b, v, depth+1)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		for _, b := range s.Get(word).PeekItems() {
			if r.canMatch(b, v) {
				r.restore(b, v, depth+1)
				break
			}
		}
	}
	switch {
	case v.Is(tree.Object):
		r.restoreMembers(s, v, depth)
	case v.Is(tree.Array):
		for i, item := range v.Items {
			prefix := s.Get("prefixItems").PeekItems()
			switch items := s.Get("items"); {
			case i < len(prefix):
				r.restore(prefix[i], item, depth+1)
			case items.Is(tree.Array) && i < len(items.Items):
				r.restore(items.Items[i], item, depth+1)
			case items.Is(tree.Object):
				r.restore(items, item, depth+1)
			case items == nil || items.True():
				r.restoreText(tree.Obj(), item)
			}
		}
	}
}

// restoreText replaces the string v, in place, by the JSON value in it, if the schema s
// accepts any value, or a free-form object and the JSON is one.
func (r *restorer) restoreText(s, v *tree.Value) {
	free := r.holdsObject(s, 0)
	if !free && !acceptsAnything(s) {
		return
	}
	found := parseJSONText(v.Text)
	if found == nil || free && !found.Is(tree.Object) {
		return
	}
	*v = *found
	r.changed = true
}

// holdsObject reports whether a string for the schema s contains the JSON of an object:
// the schema accepts a free-form object and no string.
func (r *restorer) holdsObject(s *tree.Value, depth int) bool {
	s = r.resolve(s)
	if s == nil || depth > 20 {
		return false
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if list := s.Get(word).PeekItems(); len(list) > 0 {
			return slices.ContainsFunc(list, func(b *tree.Value) bool { return r.holdsObject(b, depth+1) }) &&
				!slices.ContainsFunc(list, func(b *tree.Value) bool { return slices.Contains(possibleTypes(r.resolve(b)), "string") })
		}
	}
	return isFreeForm(s) && !slices.Contains(possibleTypes(s), "string")
}

// restoreMembers removes, in place, members of v that are null only because the converted
// schema required them, and restores the others.
func (r *restorer) restoreMembers(s, v *tree.Value, depth int) {
	properties := s.Get("properties")
	kept := v.Members[:0:0]
	for _, m := range v.Members {
		p := properties.Get(m.Name)
		required := slices.ContainsFunc(s.Get("required").PeekItems(), func(n *tree.Value) bool { return n.Text == m.Name })
		if p != nil && m.Value.Is(tree.Null) && !required && (acceptsAnything(p) || !acceptsNull(p, r.root, 0)) {
			r.changed = true
			continue
		}
		if p != nil {
			r.restore(p, m.Value, depth+1)
		}
		kept = append(kept, m)
	}
	v.Members = kept
}

// canMatch reports whether a value can match a branch: by its type, the names of its
// members, and the members with a constant value.
func (r *restorer) canMatch(s, v *tree.Value) bool {
	s = r.resolve(s)
	if s == nil {
		return false
	}
	is := typeOf(v)
	if names := possibleTypes(s); len(names) > 0 && !slices.Contains(names, is) && (is != "integer" || !slices.Contains(names, "number")) {
		return false
	}
	for _, m := range v.Members {
		p := r.resolve(s.Get("properties").Get(m.Name))
		if p == nil && s.Get("properties") != nil {
			return false
		}
		if c := p.Get("const"); c != nil && !Equal(c, m.Value) {
			return false
		}
		if e := p.Get("enum"); e.Is(tree.Array) && !m.Value.Is(tree.Null) && !slices.ContainsFunc(e.Items, func(v *tree.Value) bool { return Equal(v, m.Value) }) {
			return false
		}
	}
	return true
}
