package mcpkit

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Types with a JSON form of their own, and interfaces that give a type one.
var (
	typeDuration = reflect.TypeFor[time.Duration]()
	typeTime     = reflect.TypeFor[time.Time]()
	typeRaw      = reflect.TypeFor[json.RawMessage]()
	typeNumber   = reflect.TypeFor[json.Number]()

	typeUnmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	typeTextUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	typeMarshaler       = reflect.TypeFor[json.Marshaler]()
	typeTextMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
)

// buildSchema returns the schema of a type, or an error with every fault of its
// tags and fields. If output is set, the schema describes the type as
// encoding/json writes it, instead of as arguments are decoded.
func buildSchema(t reflect.Type, output bool) (*schema, error) {
	b := &schemaBuilder{output: output, building: map[reflect.Type]*schema{}, recursiveTypes: map[reflect.Type]*schema{}}
	s := b.buildType(t, t.String())
	if s.kind == kindRef { // the root itself is recursive: it is "#"
		s = s.ref
		s.defName = ""
	}
	for _, def := range b.defs {
		if def != s {
			s.defs = append(s.defs, def)
		}
	}
	return s, errors.Join(b.faults...)
}

// schemaBuilder builds the schema of a type and the types within it.
type schemaBuilder struct {
	output         bool
	building       map[reflect.Type]*schema // types being built, to detect recursion
	recursiveTypes map[reflect.Type]*schema // recursive types that are complete
	defs           []*schema                // recursive types, for $defs
	faults         []error
}

// faultf records a fault of the field or type at where.
func (b *schemaBuilder) faultf(where, format string, args ...any) {
	b.faults = append(b.faults, fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...)))
}

// buildType returns a new schema of t, which may be changed by tags. where
// names the field, for faults.
func (b *schemaBuilder) buildType(t reflect.Type, where string) *schema {
	for depth := 0; t.Kind() == reflect.Pointer; t = t.Elem() {
		if depth++; depth > 8 {
			b.faultf(where, "a pointer to itself cannot be described")
			return &schema{}
		}
	}
	if s := b.specialSchema(t); s != nil {
		return s
	}
	if t.Name() == "" {
		return b.buildByKind(t, where, &schema{goType: t})
	}
	if s := cmp.Or(b.building[t], b.recursiveTypes[t]); s != nil {
		return b.reference(t, s)
	}
	s := &schema{goType: t}
	b.building[t] = s
	b.buildByKind(t, where, s)
	delete(b.building, t)
	if s.defName != "" {
		b.recursiveTypes[t] = s
		b.defs = append(b.defs, s)
		return &schema{kind: kindRef, ref: s, goType: t}
	}
	return s
}

// reference returns a reference to the schema s of a recursive type, and names
// s for $defs.
func (b *schemaBuilder) reference(t reflect.Type, s *schema) *schema {
	if s.defName == "" {
		name := strings.Join(strings.FieldsFunc(t.Name(), func(r rune) bool { return !isNameRune(r, "_") }), "_")
		taken := func(name string) bool {
			for _, other := range b.building {
				if other.defName == name {
					return true
				}
			}
			return slices.ContainsFunc(b.defs, func(d *schema) bool { return d.defName == name })
		}
		free := name
		for i := 2; taken(free); i++ {
			free = name + strconv.Itoa(i)
		}
		s.defName = free
	}
	return &schema{kind: kindRef, ref: s, goType: t}
}

// specialSchema returns the schema of a type such as time.Time, whose JSON form differs
// from the form of other types of its kind; nil for other types.
func (b *schemaBuilder) specialSchema(t reflect.Type) *schema {
	pointer := reflect.PointerTo(t)
	switch {
	case t == typeDuration:
		return &schema{kind: kindDuration, goType: t}
	case t == typeTime:
		return &schema{kind: kindText, goType: t, format: "date-time"}
	case t == typeRaw:
		return &schema{kind: kindAny, goType: t}
	case t == typeNumber:
		return &schema{kind: kindNumber, goType: t}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		if !pointer.Implements(typeUnmarshaler) && !pointer.Implements(typeTextUnmarshaler) {
			return &schema{kind: kindBytes, goType: t}
		}
	}
	whole, text := typeUnmarshaler, typeTextUnmarshaler
	if b.output {
		whole, text = typeMarshaler, typeTextMarshaler
	}
	switch {
	case t.Kind() == reflect.Interface:
		return nil
	case pointer.Implements(whole):
		return &schema{kind: kindAny, goType: t}
	case pointer.Implements(text):
		return &schema{kind: kindText, goType: t}
	}
	return nil
}

// buildByKind sets the members of s that follow from t's kind, and returns s.
func (b *schemaBuilder) buildByKind(t reflect.Type, where string, s *schema) *schema {
	switch t.Kind() {
	case reflect.Bool:
		s.kind = kindBoolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.kind = kindInteger
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.kind = kindInteger
		s.min = bound{isSet: true, text: "0", isExact: true}
	case reflect.Float32, reflect.Float64:
		s.kind = kindNumber
	case reflect.String:
		s.kind = kindString
	case reflect.Slice, reflect.Array:
		s.kind = kindList
		s.items = b.buildType(t.Elem(), where+"[]")
		if t.Kind() == reflect.Array {
			n := int64(t.Len())
			s.min = bound{isSet: true, text: fmt.Sprint(n), integer: n, float: float64(n), isExact: true}
			s.max = s.min
		}
	case reflect.Map:
		s.kind = kindMap
		if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(typeTextUnmarshaler) {
			b.faultf(where, "a map needs plain string keys, not %s", t.Key())
		}
		s.items = b.buildType(t.Elem(), where+"{}")
	case reflect.Struct:
		s.kind = kindObject
		b.buildProperties(t, where, s)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			b.faultf(where, "an interface with methods (%s) cannot be described", t)
		}
		s.kind = kindAny
	default:
		b.faultf(where, "a %s cannot be sent as JSON", t.Kind())
	}
	return s
}
