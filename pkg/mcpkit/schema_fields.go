package mcpkit

import (
	"reflect"
	"slices"
	"strings"
)

// candidateProperty is a field that may become a property. Of several with the
// same name, the field of the outermost struct wins, as in encoding/json.
type candidateProperty struct {
	property
	depth int // number of embedded structs around the field
	where string
}

// buildProperties sets the properties and names of s by t's fields.
func (b *schemaBuilder) buildProperties(t reflect.Type, where string, s *schema) {
	var candidates []candidateProperty
	b.collectFields(t, where, nil, 0, map[reflect.Type]bool{}, &candidates)
	s.byName = map[string]int{}
	for i, c := range candidates {
		if slices.ContainsFunc(candidates, func(o candidateProperty) bool { return o.name == c.name && o.depth < c.depth }) {
			continue
		}
		for _, o := range candidates[:i] {
			if o.depth == c.depth && o.name == c.name {
				b.faultf(c.where, "the name %q is already that of %s", c.name, o.where)
			}
		}
		s.byName[c.name] = len(s.properties)
		s.properties = append(s.properties, c.property)
	}
	for i, p := range s.properties {
		if p.hidden && p.required {
			b.faultf(where, "%s is required: callers cannot know it", p.name)
		}
		for _, alias := range p.aliases {
			if other, taken := s.byName[alias]; taken && s.shareAlias(alias, i) {
				continue
			} else if taken {
				b.faultf(where, "the alias %q of %s is already a name of %s", alias, p.name, s.properties[other].name)
				continue
			}
			s.byName[alias] = i
		}
		for _, o := range s.properties[:i] {
			if o.name != p.name && strings.EqualFold(o.name, p.name) {
				b.faultf(where, "the names %q and %q differ only in case", o.name, p.name)
			}
		}
	}
}

// collectFields appends the fields of t to candidates, with those of embedded
// structs in place. index and depth describe the position of t itself;
// embedding has the structs around t, to detect recursion.
func (b *schemaBuilder) collectFields(t reflect.Type, where string, index []int, depth int, embedding map[reflect.Type]bool, candidates *[]candidateProperty) {
	if embedding[t] {
		b.faultf(where, "%s embeds itself", t)
		return
	}
	embedding[t] = true
	defer delete(embedding, t)
	for i := range t.NumField() {
		field := t.Field(i)
		here := where + "." + field.Name
		at := append(slices.Clone(index), i)
		tags, err := parseTags(field.Tag)
		if err != nil {
			if field.IsExported() || field.Anonymous {
				b.faultf(here, "%w", err)
			}
			continue
		}
		name, optional, skip, err := parseJSONTag(field, tags)
		if err != nil {
			b.faultf(here, "%w", err)
			continue
		}
		if embedded := embeddedStruct(field, tags); embedded != nil && !skip && b.specialSchema(embedded) == nil {
			if field.Type.Kind() == reflect.Pointer && !field.IsExported() {
				b.faultf(here, "an embedded pointer to an unexported struct cannot be filled in")
				continue
			}
			b.collectFields(embedded, here, at, depth+1, embedding, candidates)
			continue
		}
		if skip || !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		*candidates = append(*candidates, candidateProperty{depth: depth, where: here, property: property{
			name: name, fieldIndex: at, aliases: b.parseAliasTag(tags, name, here),
			required: !optional && field.Type.Kind() != reflect.Pointer,
			hidden:   b.parseHiddenTag(tags, here),
			schema:   b.buildField(field, name, tags, here),
		}})
	}
}

// parseHiddenTag reports whether a field has the tag hidden, whose only value is
// "true". Another value is a fault of the schema at where, and counts as hidden.
func (b *schemaBuilder) parseHiddenTag(tags map[string]string, where string) bool {
	value, ok := tags["hidden"]
	if ok && value != "true" {
		b.faultf(where, "hidden:%q: the value is \"true\"", value)
	}
	return ok
}

// buildField returns the schema of one field by its type and tags. An invalid name or
// tag is a fault of the schema at where.
func (b *schemaBuilder) buildField(field reflect.StructField, name string, tags map[string]string, where string) *schema {
	if !isValidName(name, "_.-") { // client APIs accept no other names for arguments
		b.faultf(where, "clients refuse the argument name %q: letters, digits, _ . - and at most 64 of them", name)
	}
	s := b.buildType(field.Type, where)
	if err := s.applyTags(tags); err != nil {
		b.faultf(where, "%w", err)
	}
	return s
}

// embeddedStruct returns the struct whose fields an embedded field promotes, or
// nil if the field promotes none.
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
