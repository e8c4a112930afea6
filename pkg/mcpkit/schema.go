package mcpkit

import (
	"reflect"
	"strings"
)

// kind is the kind of value that a schema describes. It is finer than JSON
// Schema's type, because checking, decoding and wording depend on the Go type.
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
	kindInteger
	kindNumber
	kindBoolean
	kindRef // a recursive type, kept under $defs
)

// schema is the part of JSON Schema that Go types need. It is immutable once
// built.
type schema struct {
	kind         kind
	goType       reflect.Type // what it decodes into, pointers removed
	description  string
	format       string
	enum         []*jsonNode
	defaultValue *jsonNode // default
	min, max     bound     // of the value, or of the length of strings, lists and maps
	verbatim     bool      // "null" and "undefined" are ordinary text
	acceptsBare  bool      // of a list: a bare value is accepted as a list of one, without a note
	acceptsWords bool      // of a string: a shell command, accepted also as a list of words

	properties    []property       // kindObject, in struct order
	byName        map[string]int   // property name or alias → index of properties
	sharedAliases map[string][]int // alias → further properties with that alias, each for values of another JSON type
	items         *schema          // of a list, or the values of a map
	ref           *schema          // kindRef
	defName       string           // name under $defs; "" is the root
	noneRequired  bool             // leave out the root's required list: an outputSchema also describes errors
	defs          []*schema        // of the root
}

// property is one member of an object.
type property struct {
	name       string
	aliases    []string
	required   bool
	hidden     bool  // accepted, but not in the schema that callers read
	fieldIndex []int // path of the field, through embedded structs
	*schema
}

// target follows a $ref.
func (s *schema) resolveRef() *schema {
	for s.kind == kindRef {
		s = s.ref
	}
	return s
}

// jsonType returns the type keyword, or "" if the schema has none.
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

// typeName names the type for a person or a model.
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
