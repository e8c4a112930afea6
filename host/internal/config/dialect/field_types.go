package dialect

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Constructors of fields for the types that store them. name, also (other names) and doc
// are members of field.

// textField returns a field for a text, which is stored in into.
func textField(name string, also []string, doc string, into *string) field {
	return field{name, also, doc, typeSchema("string"), func(r *reader, n *node) { *into = r.text(n) }}
}

// textsField returns a field whose texts are appended to into.
func textsField(name string, also []string, doc string, into *[]string) field {
	return field{name, also, doc, listSchema("string"), func(r *reader, n *node) { *into = append(*into, r.texts(n)...) }}
}

// nonEmptyTextsField returns a field for a list of at least one pattern of tools, whose items are
// added to into: an empty list of permitted tools would be read as no list, which permits
// all. otherwise ends the message about an empty list with another way to allow none.
func nonEmptyTextsField(name string, also []string, doc, otherwise string, into *[]string) field {
	return field{name, also, doc, nonEmptyListSchema("string"), func(r *reader, n *node) {
		list := r.texts(n)
		if len(list) == 0 {
			r.problem("an empty list would allow all tools; to allow all, leave it out%s", otherwise)
		}
		*into = append(*into, list...)
	}}
}

// numberField returns a field for a whole number above 0, which is stored in into.
func numberField(name string, also []string, doc string, into *int) field {
	return field{name, also, doc, map[string]any{"type": "integer", "minimum": 1}, func(r *reader, n *node) { *into = r.count(n) }}
}

// numberOrOffField returns a field for a whole number above 0 or off, which is stored as -1.
func numberOrOffField(name string, also []string, doc string, into *int) field {
	return field{name, also, doc, map[string]any{"oneOf": []any{map[string]any{"type": "integer", "minimum": 1}, offSchema()}}, func(r *reader, n *node) {
		if *into = -1; !isOff(n) {
			*into = r.count(n)
		}
	}}
}

// durationField returns a field for a duration above 0; null sets 0. A number without a unit
// is a problem in toolroom's own files; see reader.duration.
func durationField(name, doc string, into *time.Duration) field {
	return field{name, nil, doc, durationSchema(), func(r *reader, n *node) { *into = r.duration(n, 0) }}
}

// sizeField returns a field for a number of bytes.
func sizeField(name, doc string, into *int64) field {
	return field{name, nil, doc, sizeSchema(false), func(r *reader, n *node) { *into = r.size(n) }}
}

// boolField returns a field for a bool, which is passed to set.
func boolField(name string, also []string, doc string, set func(bool)) field {
	return field{name, also, doc, typeSchema("boolean"), func(r *reader, n *node) {
		if value, ok := r.boolean(n); ok {
			set(value)
		}
	}}
}

// objectSchema returns the schema of a map with these fields.
func objectSchema(fields []field, required ...string) map[string]any {
	properties := map[string]any{}
	for _, f := range fields {
		if f.schema != nil {
			properties[f.name] = withDescription(f.schema, f.doc)
		}
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// typeOrObjectSchema returns the schema of a value of a JSON type, or of a map with fields.
func typeOrObjectSchema(kind string, fields []field) map[string]any {
	return map[string]any{"oneOf": []any{typeSchema(kind), objectSchema(fields)}}
}

// offOrObjectSchema returns the schema of off, or of a map with fields.
func offOrObjectSchema(fields []field) map[string]any {
	return map[string]any{"oneOf": []any{offSchema(), objectSchema(fields)}}
}

// offSchema returns the schema of the values that isOff accepts.
func offSchema() map[string]any { return map[string]any{"enum": []any{"off", false}} }

// durationOrOffSchema returns the schema of a duration or off.
func durationOrOffSchema() map[string]any {
	return map[string]any{"oneOf": []any{offSchema(), durationSchema()}}
}

// sizeSchema returns the schema of a number of bytes; with offOrObjectSchema, off is allowed as
// well.
func sizeSchema(orOff bool) map[string]any {
	either := []any{map[string]any{"type": "integer", "minimum": 1}, map[string]any{"type": "string", "pattern": sizePattern}}
	if orOff {
		either = append(either, offSchema())
	}
	return map[string]any{"oneOf": either}
}

// isOff reports whether a value switches something off: off or false.
func isOff(n *node) bool {
	return n.kind == boolNode && strings.EqualFold(n.text, "false") || n.kind == textNode && strings.EqualFold(n.text, "off")
}

// normalizeOff returns the word off for the value false, which some parsers make of off, and
// other values unchanged.
func (r *reader) normalizeOff(n *node) *node {
	if isOff(n) {
		return &node{kind: textNode, text: "off", line: n.line}
	}
	return n
}

// durationOrOff reads a duration, or off as -1.
func (r *reader) durationOrOff(n *node) time.Duration {
	if isOff(n) {
		return -1
	}
	return r.duration(n, 0)
}

const sizePattern = `^([0-9]+) ?(B|KB|KiB|MB|MiB|GB|GiB)?$`

// size returns a number of bytes, such as 65536, 64KiB or 10 MB; 0 for null. Other nodes
// are a problem, and return 0.
func (r *reader) size(n *node) int64 {
	if n.kind == nullNode {
		return 0
	}
	m := regexp.MustCompile(sizePattern).FindStringSubmatch(n.text)
	if m == nil || n.kind != textNode && n.kind != numberNode {
		r.problem("want a size like 64KiB or 10MB")
		return 0
	}
	unit := map[string]int64{"": 1, "B": 1, "KB": 1e3, "KiB": 1 << 10, "MB": 1e6, "MiB": 1 << 20, "GB": 1e9, "GiB": 1 << 30}[m[2]]
	value, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || value < 1 || value > math.MaxInt64/unit {
		r.problem("want a size above 0, like 64KiB or 10MB")
		return 0
	}
	return value * unit
}
