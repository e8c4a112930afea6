package mcpkit

import (
	"bytes"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// JSON returns the schema as JSON. Members have a fixed order and properties
// the order of the struct, so that the same type always gives the same bytes.
func (s *schema) JSON() json.RawMessage {
	var w schemaWriter
	w.writeRoot(s)
	return w.buf.Bytes()
}

// schemaWriter writes a schema as JSON.
type schemaWriter struct{ buf bytes.Buffer }

// writeRoot writes the whole schema with its $defs.
func (w *schemaWriter) writeRoot(s *schema) {
	w.openObject()
	w.writeKeywords(s)
	if len(s.defs) > 0 {
		w.writeName("$defs")
		w.openObject()
		for _, def := range s.defs {
			w.writeName(def.defName)
			w.writeSchema(def)
		}
		w.closeObject()
	}
	w.closeObject()
}

// writeSchema writes one schema as an object.
func (w *schemaWriter) writeSchema(s *schema) {
	w.openObject()
	w.writeKeywords(s)
	w.closeObject()
}

// writeKeywords writes the members of a schema's object.
func (w *schemaWriter) writeKeywords(s *schema) {
	if s.kind == kindRef {
		w.writeStringMember("$ref", refPointer(s.ref))
	}
	if name := s.jsonType(); name != "" {
		w.writeStringMember("type", name)
	}
	if text := s.descriptionText(); text != "" {
		w.writeStringMember("description", text)
	}
	if s.format != "" {
		w.writeStringMember("format", s.format)
	}
	if s.kind == kindBytes {
		w.writeStringMember("contentEncoding", "base64")
	}
	if len(s.enum) > 0 {
		w.writeName("enum")
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
		w.writeMember("default", s.defaultValue.raw)
	}
	w.writeBounds(s)
	w.writeChildren(s)
}

// writeBounds writes the bounds of a value or a length. The model gets every
// byte of a definition with each request, so a lower bound of 0 or 1 is checked
// but not written, like the default false.
func (w *schemaWriter) writeBounds(s *schema) {
	low, high := "minimum", "maximum"
	switch s.kind {
	case kindDuration: // in the description, since JSON Schema has no bounds for them
		return
	case kindString, kindText:
		low, high = "minLength", "maxLength"
	case kindList:
		low, high = "minItems", "maxItems"
	case kindMap:
		low, high = "minProperties", "maxProperties"
	}
	if s.min.isSet && s.min.text != "0" && s.min.text != "1" {
		w.writeMember(low, []byte(s.min.text))
	}
	if s.max.isSet {
		w.writeMember(high, []byte(s.max.text))
	}
}

// writeChildren writes the schemas of items, map values or properties.
func (w *schemaWriter) writeChildren(s *schema) {
	switch s.kind {
	case kindList:
		w.writeName("items")
		w.writeSchema(s.items)
	case kindMap:
		// Some clients refuse an object without properties.
		w.writeMember("properties", []byte("{}"))
		if s.items.kind != kindAny || s.items.description != "" {
			w.writeName("additionalProperties")
			w.writeSchema(s.items)
		}
	case kindObject:
		w.writeName("properties")
		w.openObject()
		var required []string
		for _, p := range s.properties {
			if p.hidden {
				continue
			}
			w.writeName(p.name)
			w.writeSchema(p.schema)
			if p.required {
				required = append(required, p.name)
			}
		}
		w.closeObject()
		if len(required) > 0 && !s.noneRequired {
			w.writeMember("required", mustMarshal(required))
		}
	}
}

// descriptionText returns the description. For a duration it adds the syntax
// and the bounds, which JSON Schema cannot express.
func (s *schema) descriptionText() string {
	if s.kind != kindDuration {
		return s.description
	}
	text := `a duration like "30s" or "1m30s"`
	if s.min.isSet {
		text += ", at least " + s.min.text
	}
	if s.max.isSet {
		text += ", at most " + s.max.text
	}
	if s.description == "" {
		return text
	}
	return s.description + " (" + text + ")"
}

// openObject begins an object.
func (w *schemaWriter) openObject() { w.buf.WriteByte('{') }

// closeObject ends an object.
func (w *schemaWriter) closeObject() { w.buf.WriteByte('}') }

// writeName writes the name of the next member, with a comma if it is not the
// first.
func (w *schemaWriter) writeName(name string) {
	if b := w.buf.Bytes(); len(b) > 0 && b[len(b)-1] != '{' {
		w.buf.WriteByte(',')
	}
	w.buf.Write(mustMarshal(name))
	w.buf.WriteByte(':')
}

// writeMember writes a member of the current object; value is JSON.
func (w *schemaWriter) writeMember(name string, value []byte) { w.writeName(name); w.buf.Write(value) }

// writeStringMember writes a member whose value is a string.
func (w *schemaWriter) writeStringMember(name, value string) { w.writeMember(name, mustMarshal(value)) }

// refPointer returns the value of $ref for a schema.
func refPointer(s *schema) string {
	if s.defName == "" {
		return "#"
	}
	return "#/$defs/" + s.defName
}

// mustMarshal returns v as JSON without escapes for HTML, which cost tokens. It
// panics if v cannot be encoded; invalid UTF-8 is replaced.
func mustMarshal(v any) []byte {
	out, err := jsonrpc.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}
