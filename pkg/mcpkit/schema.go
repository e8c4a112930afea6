package mcpkit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
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
	typ          reflect.Type // what it decodes into, pointers removed
	description  string
	format       string
	enum         []*node
	defaultValue *node // default
	min, max     bound // of the value, or of the length of strings, lists and maps
	verbatim     bool  // "null" and "undefined" are ordinary text
	acceptsBare  bool  // of a list: a bare value is accepted as a list of one, without a note
	acceptsWords bool  // of a string: a shell command, accepted also as a list of words

	properties    []property       // kindObject, in struct order
	byName        map[string]int   // property name or alias → index of properties
	sharedAliases map[string][]int // alias → further properties with that alias, each for values of another JSON type
	items         *schema          // of a list, or the values of a map
	ref           *schema          // kindRef
	defName       string           // name under $defs; "" is the root
	optionalRoot  bool             // leave out the root's required list: an outputSchema also describes errors
	defs          []*schema        // of the root
}

// property is one member of an object.
type property struct {
	name     string
	aliases  []string
	required bool
	hidden   bool  // accepted, but not in the schema that callers read
	index    []int // path of the field, through embedded structs
	*schema
}

// target follows a $ref.
func (s *schema) target() *schema {
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
	t := s.target()
	switch t.kind {
	case kindMap:
		if t.items.target().kind == kindAny {
			return "object"
		}
		return "object of " + plural(t.items.typeName())
	case kindList:
		if t.items.target().kind == kindAny {
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

// JSON returns the schema as JSON. Members have a fixed order and properties
// the order of the struct, so that the same type always gives the same bytes.
func (s *schema) JSON() json.RawMessage {
	var w schemaWriter
	w.root(s)
	return w.buf.Bytes()
}

type schemaWriter struct{ buf bytes.Buffer }

func (w *schemaWriter) root(s *schema) {
	w.open()
	w.body(s)
	if len(s.defs) > 0 {
		w.key("$defs")
		w.open()
		for _, def := range s.defs {
			w.key(def.defName)
			w.schema(def)
		}
		w.close()
	}
	w.close()
}

func (w *schemaWriter) schema(s *schema) {
	w.open()
	w.body(s)
	w.close()
}

func (w *schemaWriter) body(s *schema) {
	if s.kind == kindRef {
		w.text("$ref", refTo(s.ref))
	}
	if name := s.jsonType(); name != "" {
		w.text("type", name)
	}
	if text := s.describe(); text != "" {
		w.text("description", text)
	}
	if s.format != "" {
		w.text("format", s.format)
	}
	if s.kind == kindBytes {
		w.text("contentEncoding", "base64")
	}
	if len(s.enum) > 0 {
		w.key("enum")
		w.buf.WriteByte('[')
		for i, value := range s.enum {
			if i > 0 {
				w.buf.WriteByte(',')
			}
			w.buf.Write(value.raw)
		}
		w.buf.WriteByte(']')
	}
	if s.defaultValue != nil && string(s.defaultValue.raw) != "false" {
		w.raw("default", s.defaultValue.raw)
	}
	w.bounds(s)
	w.children(s)
}

// bounds writes the bounds of a value or a length. The model gets every byte of
// a definition with each request, so a lower bound of 0 or 1 is checked but not
// written, like the default false.
func (w *schemaWriter) bounds(s *schema) {
	low, high := "minimum", "maximum"
	switch s.kind {
	case kindDuration: // said in the description: JSON Schema has no bounds for text
		return
	case kindString, kindText:
		low, high = "minLength", "maxLength"
	case kindList:
		low, high = "minItems", "maxItems"
	case kindMap:
		low, high = "minProperties", "maxProperties"
	}
	if s.min.set && s.min.text != "0" && s.min.text != "1" {
		w.raw(low, []byte(s.min.text))
	}
	if s.max.set {
		w.raw(high, []byte(s.max.text))
	}
}

func (w *schemaWriter) children(s *schema) {
	switch s.kind {
	case kindList:
		w.key("items")
		w.schema(s.items)
	case kindMap:
		// Some clients refuse an object without properties.
		w.raw("properties", []byte("{}"))
		if s.items.kind != kindAny || s.items.description != "" {
			w.key("additionalProperties")
			w.schema(s.items)
		}
	case kindObject:
		w.key("properties")
		w.open()
		var required []string
		for _, p := range s.properties {
			if p.hidden {
				continue
			}
			w.key(p.name)
			w.schema(p.schema)
			if p.required {
				required = append(required, p.name)
			}
		}
		w.close()
		if len(required) > 0 && !s.optionalRoot {
			w.raw("required", encode(required))
		}
	}
}

// describe returns the description, for a duration with its form and bounds,
// which JSON Schema cannot express.
func (s *schema) describe() string {
	if s.kind != kindDuration {
		return s.description
	}
	text := `a duration like "30s" or "1m30s"`
	if s.min.set {
		text += ", at least " + s.min.text
	}
	if s.max.set {
		text += ", at most " + s.max.text
	}
	if s.description == "" {
		return text
	}
	return s.description + " (" + text + ")"
}

func (w *schemaWriter) open()  { w.buf.WriteByte('{') }
func (w *schemaWriter) close() { w.buf.WriteByte('}') }

func (w *schemaWriter) key(name string) {
	if b := w.buf.Bytes(); len(b) > 0 && b[len(b)-1] != '{' {
		w.buf.WriteByte(',')
	}
	w.buf.Write(encode(name))
	w.buf.WriteByte(':')
}

func (w *schemaWriter) raw(name string, value []byte) { w.key(name); w.buf.Write(value) }
func (w *schemaWriter) text(name, value string)       { w.raw(name, encode(value)) }

func refTo(s *schema) string {
	if s.defName == "" {
		return "#"
	}
	return "#/$defs/" + s.defName
}

// encode marshals v without HTML escapes, which cost tokens. Callers pass only
// values that can be encoded; text is made valid UTF-8.
func encode(v any) []byte {
	out, err := jsonrpc.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}
