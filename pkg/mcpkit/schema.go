package mcpkit

import (
	"reflect"
	"strings"
)

// kind is the kind of value that a schema describes. It is finer than JSON
// Schema's type, because checks, decoding and wording depend on the Go type.
type kind uint8

const (
	kindAny      kind = iota // {}: any JSON value
	kindObject               // struct
	kindMap                  // map with string keys
	kindList                 // slice or array
	kindString               // string
	kindText                 // string read by UnmarshalText
	kindBytes                // []byte as base64
	kindDuration             // time.Duration as "30s"
	// kindInteger is an int or uint of any size, kindNumber a float or
	// json.Number, kindBoolean a bool.
	kindInteger
	kindNumber
	kindBoolean
	kindRef // a recursive type, kept under $defs
)

// schema is the part of JSON Schema that Go types need. It is immutable once
// built.
type schema struct {
	kind         kind
	goType       reflect.Type // the type to decode into, without pointers; nil: none
	description  string
	format       string // JSON Schema's format: date-time
	enum         []*jsonNode
	defaultValue *jsonNode // default
	min, max     bound     // bounds of the value, or of the length of strings, lists and maps
	verbatim     bool      // of a string: "null" and "undefined" are ordinary text
	acceptsBare  bool      // of a list: a bare value is accepted as a list of one, without a note
	acceptsWords bool      // of a string: a shell command, accepted also as a list of words

	properties    []property       // of kindObject, in the order of the struct
	byName        map[string]int   // name or alias → index of properties
	sharedAliases map[string][]int // alias → further properties with that alias, each for another JSON type
	items         *schema          // of a list's items or a map's values
	ref           *schema          // of kindRef: the schema referred to
	defName       string           // name under $defs; "": the root

	// noneRequired, of the root, leaves out the required list: an outputSchema
	// also describes errors.
	noneRequired bool
	defs         []*schema // of the root: the schemas under $defs
}

// property is one member of an object.
type property struct {
	name       string
	aliases    []string
	required   bool  // a call without the argument is a fault
	hidden     bool  // accepted, but left out of the schema that clients read
	fieldIndex []int // path of the struct field, as for reflect's FieldByIndex
	*schema
}

// resolveRef returns the schema that s refers to, or s if it is no reference.
func (s *schema) resolveRef() *schema {
	for s.kind == kindRef {
		s = s.ref
	}
	return s
}

// jsonType returns the keyword type, or "" if the schema has none.
func (s *schema) jsonType() string {
	switch s.kind {
	case kindObject, kindMap:
		return "object"
	case kindList:
		return "array"
	case kindString, kindText, kindBytes, kindDuration:
		return "string"
	case kindInteger:
		return "integer"
	case kindNumber:
		return "number"
	case kindBoolean:
		return "boolean"
	}
	return ""
}

// typeName returns the type's name for a person or a model, such as "list of
// strings".
func (s *schema) typeName() string {
	t := s.resolveRef()
	switch t.kind {
	case kindMap:
		if t.items.resolveRef().kind == kindAny {
			return "object"
		}
		return "object of " + plural(t.items.typeName())
	case kindList:
		if t.items.resolveRef().kind == kindAny {
			return "list"
		}
		return "list of " + plural(t.items.typeName())
	case kindBytes:
		return "base64 string"
	case kindDuration:
		return "duration"
	case kindAny:
		return "any value"
	}
	return t.jsonType()
}

// plural returns the plural of a type's name, such as "lists of strings" for
// "list of strings".
func plural(words string) string {
	switch head, rest, _ := strings.Cut(words, " "); head {
	case "any":
		return "any values"
	case "list", "object":
		if rest != "" {
			return head + "s " + rest
		}
	}
	return words + "s"
}
