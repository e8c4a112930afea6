package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// jsonText is a parsed JSON text, with the positions of its values so that it can be
// edited. Comments and trailing commas are accepted, as editors accept them; a byte
// order mark at the start counts as white space.
type jsonText struct {
	text []byte
	at   int        // position of the parser
	root *jsonValue // nil: the text is empty
}

// jsonValue is a value in the text: text[start:end].
type jsonValue struct {
	start, end int
	object     bool
	members    []jsonMember
	comma      int // position of a comma after the last member, -1: none
}

// jsonMember is a member of an object.
type jsonMember struct {
	name  string
	start int // position of the name
	value *jsonValue
	comma int // position of the comma after it, -1: none
}

// maxDepth bounds the depth of nested values.
const maxDepth = 1000

// parseJSON parses JSON with comments and trailing commas. An empty text has no root. The
// error names the line.
func parseJSON(text []byte) (*jsonText, error) {
	t := &jsonText{text: text}
	if err := t.skipSpace(); err != nil {
		return nil, err
	}
	if t.at == len(text) {
		return t, nil
	}
	root, err := t.parseValue(0)
	if err == nil {
		err = t.skipSpace()
	}
	if err == nil && t.at < len(text) {
		err = t.lineError("text after the value")
	}
	t.root = root
	return t, err
}

// lineError returns an error with the number of the current line.
func (t *jsonText) lineError(why string) error {
	return fmt.Errorf("line %d: %s", 1+bytes.Count(t.text[:min(t.at, len(t.text))], []byte("\n")), why)
}

// skipSpace skips white space and comments. It fails if a comment does not end.
func (t *jsonText) skipSpace() error {
	for t.at < len(t.text) {
		rest := t.text[t.at:]
		switch {
		case slices.Contains([]byte(" \t\r\n"), rest[0]):
			t.at++
		case t.at == 0 && bytes.HasPrefix(rest, []byte("\ufeff")):
			t.at += len("\ufeff")
		case bytes.HasPrefix(rest, []byte("//")):
			if i := bytes.IndexByte(rest, '\n'); i >= 0 {
				t.at += i
			} else {
				t.at = len(t.text)
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			i := bytes.Index(rest[2:], []byte("*/"))
			if i < 0 {
				return t.lineError("a comment does not end")
			}
			t.at += i + 4
		default:
			return nil
		}
	}
	return nil
}

// parseValue parses the value at the current position, inside depth other values.
func (t *jsonText) parseValue(depth int) (*jsonValue, error) {
	if t.at == len(t.text) {
		return nil, t.lineError("a value is missing")
	}
	if depth > maxDepth {
		return nil, t.lineError("nested too deeply")
	}
	v := &jsonValue{start: t.at, comma: -1}
	var err error
	switch t.text[t.at] {
	case '{':
		v.object = true
		err = t.parseList(v, '}', depth)
	case '[':
		err = t.parseList(v, ']', depth)
	case '"':
		_, err = t.parseString()
	default:
		for t.at < len(t.text) && !slices.Contains([]byte(" \t\r\n,:]}[{\"/"), t.text[t.at]) {
			t.at++
		}
		if !json.Valid(t.text[v.start:t.at]) {
			err = t.lineError(fmt.Sprintf("%q is not a JSON value", t.text[v.start:t.at]))
		}
	}
	v.end = t.at
	return v, err
}

// parseString parses the string at the current position, a quote, and returns it decoded.
// It returns an error for one that is invalid or does not end on its line.
func (t *jsonText) parseString() (string, error) {
	start := t.at
	for t.at++; t.at < len(t.text); t.at++ {
		switch t.text[t.at] {
		case '\\':
			t.at++
		case '\n':
			return "", t.lineError("a string does not end on its line")
		case '"':
			t.at++
			var s string
			if json.Unmarshal(t.text[start:t.at], &s) != nil {
				return "", t.lineError("invalid string " + string(t.text[start:t.at]))
			}
			return s, nil
		}
	}
	t.at = len(t.text)
	return "", t.lineError("a string does not end")
}

// parseList parses the elements of an array, or the members of an object into v, up to
// the closing bracket end.
func (t *jsonText) parseList(v *jsonValue, end byte, depth int) error {
	t.at++
	for {
		if err := t.skipSpace(); err != nil {
			return err
		}
		if t.at < len(t.text) && t.text[t.at] == end {
			t.at++
			return nil
		}
		m := jsonMember{start: t.at, comma: -1}
		if v.object {
			if err := t.parseMemberName(&m); err != nil {
				return err
			}
		}
		var err error
		if m.value, err = t.parseValue(depth + 1); err != nil {
			return err
		}
		if err := t.skipSpace(); err != nil {
			return err
		}
		v.comma = -1
		switch {
		case t.at < len(t.text) && t.text[t.at] == ',':
			m.comma, v.comma = t.at, t.at
			t.at++
		case t.at == len(t.text) || t.text[t.at] != end:
			return t.lineError(fmt.Sprintf("a comma or %q is missing", end))
		}
		if v.object {
			v.members = append(v.members, m)
		}
	}
}

// parseMemberName parses the name of a member into m, and the colon after it.
func (t *jsonText) parseMemberName(m *jsonMember) (err error) {
	if t.at == len(t.text) || t.text[t.at] != '"' {
		return t.lineError("the name of a member is missing")
	}
	if m.name, err = t.parseString(); err != nil {
		return err
	}
	if err := t.skipSpace(); err != nil {
		return err
	}
	if t.at == len(t.text) || t.text[t.at] != ':' {
		return t.lineError("a colon is missing")
	}
	t.at++
	return t.skipSpace()
}

// findMember returns the member of v with this name, or nil. It fails if the name
// occurs twice, since programs differ in which of the two they use.
func (t *jsonText) findMember(v *jsonValue, name string) (*jsonMember, error) {
	var found *jsonMember
	for i := range v.members {
		if v.members[i].name == name {
			if found != nil {
				return nil, fmt.Errorf("%q appears twice", name)
			}
			found = &v.members[i]
		}
	}
	return found, nil
}

// findNull returns the top-level member called member if its value is null, else nil. It
// returns an error if there are two.
func (t *jsonText) findNull(member string) (*jsonMember, error) {
	if t.root == nil || !t.root.object {
		return nil, nil
	}
	m, err := t.findMember(t.root, member)
	if err != nil || m == nil || !t.isNull(m) {
		return nil, err
	}
	return m, nil
}

// isNull reports whether the value of a member is null.
func (t *jsonText) isNull(m *jsonMember) bool {
	return string(t.text[m.value.start:m.value.end]) == "null"
}

// findServer returns the top-level object called member, which has the servers, and its
// entry called name; nil for each that does not exist, or is null. It returns an error if the root or
// that member is no object.
func (t *jsonText) findServer(member, name string) (servers *jsonValue, entry *jsonMember, err error) {
	if t.root == nil {
		return nil, nil, nil
	}
	if !t.root.object {
		return nil, nil, errors.New("the file is not a JSON object")
	}
	m, err := t.findMember(t.root, member)
	if err != nil || m == nil {
		return nil, nil, err
	}
	if t.isNull(m) {
		return nil, nil, nil
	}
	if !m.value.object {
		return nil, nil, fmt.Errorf("%q is not an object", member)
	}
	entry, err = t.findMember(m.value, name)
	return m.value, entry, err
}

// entriesOfJSON returns the decoded entries of the top-level object member by their names,
// nil if it does not exist. It returns an error for malformed text, or a member that is no
// object.
func entriesOfJSON(text []byte, member string) (map[string]any, error) {
	t, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	servers, _, err := t.findServer(member, "")
	if err != nil || servers == nil {
		return nil, err
	}
	entries := map[string]any{}
	for _, m := range servers.members {
		entries[m.name] = t.decode(m.value)
	}
	return entries, nil
}

// decode returns v as encoding/json decodes it into an any.
func (t *jsonText) decode(v *jsonValue) (value any) {
	plain := &jsonText{text: t.text[v.start:v.end]}
	json.Unmarshal(plain.withoutComments(), &value) //nolint:errcheck // it was parsed; nil otherwise
	return value
}

// withoutComments returns the text as standard JSON, without comments and trailing
// commas; nil if a comment or a string does not end.
func (t *jsonText) withoutComments() []byte {
	var out []byte
	comma := -1 // in out, with nothing but space after it
	for t.at < len(t.text) {
		start := t.at
		if t.skipSpace() != nil {
			return nil
		}
		if t.at > start {
			out = append(out, ' ')
			continue
		}
		switch c := t.text[t.at]; {
		case c == '"':
			if _, err := t.parseString(); err != nil {
				return nil
			}
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
			t.at++
		default:
			t.at++
		}
		comma = -1
		if t.text[start] == ',' {
			comma = len(out)
		}
		out = append(out, t.text[start:t.at]...)
	}
	return out
}
