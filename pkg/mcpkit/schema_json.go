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

func (w *schemaWriter) open() { w.buf.WriteByte('{') }

func (w *schemaWriter) close() { w.buf.WriteByte('}') }

func (w *schemaWriter) key(name string) {
	if b := w.buf.Bytes(); len(b) > 0 && b[len(b)-1] != '{' {
		w.buf.WriteByte(',')
	}
	w.buf.Write(encode(name))
	w.buf.WriteByte(':')
}

func (w *schemaWriter) raw(name string, value []byte) { w.key(name); w.buf.Write(value) }

func (w *schemaWriter) text(name, value string) { w.raw(name, encode(value)) }

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
