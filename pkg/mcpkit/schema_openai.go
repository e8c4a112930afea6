package mcpkit

import (
	"encoding/json"
	"fmt"
)

// strict returns the schema in the form of OpenAI's strict function calls:
// every object closed, every property required, optional ones nullable (null
// then means not given). lost lists what that form cannot express; the tool
// still checks it.
func (s *schema) strict() (out json.RawMessage, lost []string) {
	w := &strictWriter{}
	if s.kind == kindMap { // arguments must be an object, and a strict one cannot have free names
		w.addLost(nil, "an object with free names became one without members")
		s = &schema{kind: kindObject, description: s.description}
	}
	w.open()
	w.body(s, nil, false)
	if len(s.defs) > 0 {
		w.key("$defs")
		w.open()
		for _, def := range s.defs {
			w.key(def.defName)
			w.schema(def, (*path)(nil).member("$defs").member(def.defName), false)
		}
		w.close()
	}
	w.close()
	return w.buf.Bytes(), w.lost
}

type strictWriter struct {
	schemaWriter
	lost []string
}

func (w *strictWriter) addLost(at *path, format string, args ...any) {
	where := at.String()
	if where == "" {
		where = "the arguments"
	}
	w.lost = append(w.lost, where+": "+fmt.Sprintf(format, args...))
}

// schema writes s, or null as well if the property is optional.
func (w *strictWriter) schema(s *schema, at *path, nullable bool) {
	w.open()
	defer w.close()
	composed := s.kind == kindRef || s.kind == kindObject || s.kind == kindList
	if !nullable || !composed {
		w.body(s, at, nullable)
		return
	}
	w.key("anyOf")
	w.buf.WriteByte('[')
	w.open()
	w.body(s, at, false)
	w.close()
	w.buf.WriteString(`,{"type":"null"}]`)
}

func (w *strictWriter) body(s *schema, at *path, nullable bool) {
	if s.kind == kindRef {
		w.text("$ref", refTo(s.ref))
		if s.description != "" {
			w.addLost(at, "the description, which cannot be combined with a reference")
		}
		return
	}
	w.head(s, at, nullable)
	if s.defaultValue != nil {
		w.addLost(at, "the default %s", s.defaultValue.raw)
	}
	switch s.kind {
	case kindInteger, kindNumber, kindList:
		w.bounds(s)
	case kindString, kindText, kindMap:
		if s.min.set || s.max.set {
			w.addLost(at, "the bounds of its length")
		}
	}
	switch s.kind {
	case kindList:
		w.key("items")
		w.schema(s.items, at.member("items"), false)
	case kindObject:
		w.object(s, at)
	}
}

// head writes type, description and enum.
func (w *strictWriter) head(s *schema, at *path, nullable bool) {
	typ, description := s.jsonType(), s.describe()
	switch s.kind {
	case kindMap, kindAny:
		if s.kind == kindMap {
			w.addLost(at, "an object with free names became a string that holds it as JSON")
			description = join(description, "(a JSON object, as text)")
		} else {
			w.addLost(at, "a value of any type became a string")
		}
		typ = "string"
	case kindBytes:
		description = join(description, "(base64)")
	}
	if nullable {
		w.raw("type", encode([]string{typ, "null"}))
	} else {
		w.text("type", typ)
	}
	if description != "" {
		w.text("description", description)
	}
	if s.format != "" {
		w.text("format", s.format)
	}
	if len(s.enum) > 0 {
		values := []json.RawMessage{}
		for _, e := range s.enum {
			values = append(values, e.raw)
		}
		if nullable {
			values = append(values, json.RawMessage("null"))
		}
		w.raw("enum", encode(values))
	}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

func (w *strictWriter) object(s *schema, at *path) {
	names := []string{}
	w.key("properties")
	w.open()
	for _, p := range s.properties {
		if p.hidden {
			continue
		}
		names = append(names, p.name)
		w.key(p.name)
		w.schema(p.schema, at.member(p.name), !p.required)
	}
	w.close()
	w.raw("required", encode(names))
	w.raw("additionalProperties", []byte("false"))
}
