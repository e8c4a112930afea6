package mcpkit

import (
	"reflect"
	"slices"
	"strings"
)

// candidate is a field that may become a property. Of several with the same
// name, the field of the outermost struct wins, as in encoding/json.
type candidate struct {
	property
	depth int
	where string
}

func (b *builder) object(t reflect.Type, where string, s *schema) {
	var all []candidate
	b.fields(t, where, nil, 0, map[reflect.Type]bool{}, &all)
	s.byName = map[string]int{}
	for i, c := range all {
		if slices.ContainsFunc(all, func(o candidate) bool { return o.name == c.name && o.depth < c.depth }) {
			continue
		}
		for _, o := range all[:i] {
			if o.depth == c.depth && o.name == c.name {
				b.fault(c.where, "the name %q is already that of %s", c.name, o.where)
			}
		}
		s.byName[c.name] = len(s.properties)
		s.properties = append(s.properties, c.property)
	}
	for i, p := range s.properties {
		if p.hidden && p.required {
			b.fault(where, "%s is required: callers cannot know it", p.name)
		}
		for _, alias := range p.aliases {
			if other, taken := s.byName[alias]; taken && s.shareAlias(alias, i) {
				continue
			} else if taken {
				b.fault(where, "the alias %q of %s is already a name of %s", alias, p.name, s.properties[other].name)
				continue
			}
			s.byName[alias] = i
		}
		for _, o := range s.properties[:i] {
			if o.name != p.name && strings.EqualFold(o.name, p.name) {
				b.fault(where, "the names %q and %q differ only in case", o.name, p.name)
			}
		}
	}
}

// fields appends the fields of t to all, with those of embedded structs in
// place.
func (b *builder) fields(t reflect.Type, where string, index []int, depth int, within map[reflect.Type]bool, all *[]candidate) {
	if within[t] {
		b.fault(where, "%s embeds itself", t)
		return
	}
	within[t] = true
	defer delete(within, t)
	for i := range t.NumField() {
		field := t.Field(i)
		here := where + "." + field.Name
		at := append(slices.Clone(index), i)
		tags, err := parseTags(field.Tag)
		if err != nil {
			if field.IsExported() || field.Anonymous {
				b.fault(here, "%w", err)
			}
			continue
		}
		name, optional, skip, err := jsonName(field, tags)
		if err != nil {
			b.fault(here, "%w", err)
			continue
		}
		if embedded := embeddedStruct(field, tags); embedded != nil && !skip && b.specialSchema(embedded) == nil {
			if field.Type.Kind() == reflect.Pointer && !field.IsExported() {
				b.fault(here, "an embedded pointer to an unexported struct cannot be filled in")
				continue
			}
			b.fields(embedded, here, at, depth+1, within, all)
			continue
		}
		if skip || !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		*all = append(*all, candidate{depth: depth, where: here, property: property{
			name: name, index: at, aliases: b.aliases(tags, name, here),
			required: !optional && field.Type.Kind() != reflect.Pointer,
			hidden:   b.hidden(tags, here),
			schema:   b.field(field, name, tags, here),
		}})
	}
}

// hidden reads the tag hidden, whose only value is "true".
func (b *builder) hidden(tags map[string]string, where string) bool {
	value, ok := tags["hidden"]
	if ok && value != "true" {
		b.fault(where, "hidden:%q: the value is \"true\"", value)
	}
	return ok
}

// field builds the schema of one field from its type and tags.
func (b *builder) field(field reflect.StructField, name string, tags map[string]string, where string) *schema {
	if !isName(name, "_.-") { // client APIs accept no other names for arguments
		b.fault(where, "clients refuse the argument name %q: letters, digits, _ . - and at most 64 of them", name)
	}
	s := b.build(field.Type, where)
	if err := s.applyTags(tags); err != nil {
		b.fault(where, "%w", err)
	}
	return s
}

// embeddedStruct returns the struct whose fields are promoted by field, or nil.
func embeddedStruct(field reflect.StructField, tags map[string]string) reflect.Type {
	name, _, _ := strings.Cut(tags["json"], ",")
	t := field.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !field.Anonymous || name != "" || t.Kind() != reflect.Struct {
		return nil
	}
	return t
}
