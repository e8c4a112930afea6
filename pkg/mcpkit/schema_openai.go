package mcpkit

import (
	"encoding/json"
	"fmt"
)

// strictJSON returns the schema in the form of OpenAI's strict function calls:
// every object closed, every property required, optional ones nullable (null
// then means not given). lost lists what that form cannot express; the tool
// still checks it.
func (s *schema) strictJSON() (out json.RawMessage, lost []string) {
	w := &strictWriter{}
	if s.kind == kindMap { // arguments must be an object, and a strict one cannot have free names
		w.addLostf(nil, "an object with free names became one without members")
		s = &schema{kind: kindObject, description: s.description}
	}
	w.openObject()
	w.writeKeywords(s, nil, false)
	if len(s.defs) > 0 {
		w.writeName("$defs")
		w.openObject()
		for _, def := range s.defs {
			w.writeName(def.defName)
			w.writeSchema(def, (*argPath)(nil).member("$defs").member(def.defName), false)
		}
		w.closeObject()
	}
	w.closeObject()
	return w.buf.Bytes(), w.lost
}

// strictWriter writes a schema for OpenAI's strict mode.
type strictWriter struct {
	schemaWriter
	lost []string // what that form cannot express, with its position
}

// addLostf records, with its position, something that strict mode cannot
// express.
func (w *strictWriter) addLostf(at *argPath, format string, args ...any) {
	where := at.String()
	if where == "" {
		where = "the arguments"
	}
	w.lost = append(w.lost, where+": "+fmt.Sprintf(format, args...))
}

// writeSchema writes s. If nullable is set, null is allowed as well.
func (w *strictWriter) writeSchema(s *schema, at *argPath, nullable bool) {
	w.openObject()
	defer w.closeObject()
	composed := s.kind == kindRef || s.kind == kindObject || s.kind == kindList
	if !nullable || !composed {
		w.writeKeywords(s, at, nullable)
		return
	}
	w.writeName("anyOf")
	w.buf.WriteByte('[')
	w.openObject()
	w.writeKeywords(s, at, false)
	w.closeObject()
	w.buf.WriteString(`,{"type":"null"}]`)
}

// writeKeywords writes the members of a schema's object. nullable adds null to its type;
// at is the place of s, for notes on what the strict form loses.
func (w *strictWriter) writeKeywords(s *schema, at *argPath, nullable bool) {
	if s.kind == kindRef {
		w.writeStringMember("$ref", refPointer(s.ref))
		if s.description != "" {
			w.addLostf(at, "the description, which cannot be combined with a reference")
		}
		return
	}
	w.writeTypeMembers(s, at, nullable)
	if s.defaultValue != nil {
		w.addLostf(at, "the default %s", s.defaultValue.raw)
	}
	switch s.kind {
	case kindInteger, kindNumber, kindList:
		w.writeBounds(s)
	case kindString, kindText, kindMap:
		if s.min.isSet || s.max.isSet {
			w.addLostf(at, "the bounds of its length")
		}
	}
	switch s.kind {
	case kindList:
		w.writeName("items")
		w.writeSchema(s.items, at.member("items"), false)
	case kindObject:
		w.writeObject(s, at)
	}
}

// writeTypeMembers writes the members of s that say what values it accepts: type,
// description, format and enum. nullable adds null to the type.
func (w *strictWriter) writeTypeMembers(s *schema, at *argPath, nullable bool) {
	typ, description := s.jsonType(), s.descriptionText()
	switch s.kind {
	case kindMap, kindAny:
		if s.kind == kindMap {
			w.addLostf(at, "an object with free names became a string that holds it as JSON")
			description = appendSentence(description, "(a JSON object, as text)")
		} else {
			w.addLostf(at, "a value of any type became a string")
		}
		typ = "string"
	case kindBytes:
		description = appendSentence(description, "(base64)")
	}
	if nullable {
		w.writeMember("type", mustMarshal([]string{typ, "null"}))
	} else {
		w.writeStringMember("type", typ)
	}
	if description != "" {
		w.writeStringMember("description", description)
	}
	if s.format != "" {
		w.writeStringMember("format", s.format)
	}
	if len(s.enum) > 0 {
		values := []json.RawMessage{}
		for _, e := range s.enum {
			values = append(values, e.raw)
		}
		if nullable {
			values = append(values, json.RawMessage("null"))
		}
		w.writeMember("enum", mustMarshal(values))
	}
}

// appendSentence returns a and b joined with a space, or b alone if a is empty.
func appendSentence(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

// writeObject writes the members properties, required and additionalProperties.
func (w *strictWriter) writeObject(s *schema, at *argPath) {
	names := []string{}
	w.writeName("properties")
	w.openObject()
	for _, p := range s.properties {
		if p.hidden {
			continue
		}
		names = append(names, p.name)
		w.writeName(p.name)
		w.writeSchema(p.schema, at.member(p.name), !p.required)
	}
	w.closeObject()
	w.writeMember("required", mustMarshal(names))
	w.writeMember("additionalProperties", []byte("false"))
}
