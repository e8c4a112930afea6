package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// newline returns the line end of the text's first line, "\n" by default.
func (t *jsonText) newline() string {
	if i := bytes.IndexByte(t.text, '\n'); i > 0 && t.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// indentAt returns the white space at the start of the line that has the position at.
// alone is true if there is nothing else before it on that line, except on the first line.
func (t *jsonText) indentAt(at int) (indent string, alone bool) {
	start := bytes.LastIndexByte(t.text[:at], '\n') + 1
	line := t.text[start:at]
	trimmed := bytes.TrimLeft(line, " \t")
	return string(line[:len(line)-len(trimmed)]), len(trimmed) == 0 && start > 0
}

// indentUnit returns the indentation of one level, two spaces by default.
func (t *jsonText) indentUnit() string {
	if t.root != nil && len(t.root.members) > 0 {
		indent, alone := t.indentAt(t.root.members[0].start)
		outer, _ := t.indentAt(t.root.start)
		if indent = strings.TrimPrefix(indent, outer); alone && indent != "" {
			return indent
		}
	}
	return "  "
}

// insert returns the text with a new last member of the object v. render returns the
// member's text for an indentation; on one line if newline is empty.
func (t *jsonText) insert(v *jsonValue, render func(indent, unit, newline string) string) []byte {
	newline, unit := t.newline(), t.indentUnit()
	closing, _ := t.indentAt(v.start)
	if len(v.members) == 0 {
		inner := t.text[v.start+1 : v.end-1]
		added := newline + closing + unit + render(closing+unit, unit, newline) + newline + closing
		if len(bytes.TrimSpace(inner)) == 0 {
			return splice(t.text, v.start+1, v.end-1, added)
		}
		kept := bytes.TrimRight(inner, " \t\r\n") // comments
		return splice(t.text, v.start+1+len(kept), v.end-1, added)
	}
	first, last := v.members[0], v.members[len(v.members)-1]
	after := last.value.end
	if v.comma >= 0 {
		after = v.comma + 1
	}
	// A comment on the line of the last member stays there.
	line := t.endOfComments(after, v.end-1)
	indent, alone := t.indentAt(first.start)
	added, separator := " "+render("", "", ""), ","
	switch {
	case alone:
		added = newline + indent + render(indent, unit, newline)
	case line > after:
		alone, indent = true, closing+unit
		added = newline + indent + render(indent, unit, newline)
	}
	if v.comma >= 0 { // keep the style of a trailing comma
		added, separator = added+",", ""
	}
	if !alone {
		return splice(t.text, after, after, separator+added)
	}
	text := splice(t.text, line, line, added)
	return splice(text, after, after, separator)
}

// endOfComments returns the end of the comments that follow the position at on its
// line, at most limit; at itself if there are none.
func (t *jsonText) endOfComments(at, limit int) int {
	end := at
	for at < limit {
		switch rest := t.text[at:limit]; {
		case rest[0] == ' ' || rest[0] == '\t':
			at++
			continue
		case bytes.HasPrefix(rest, []byte("//")):
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				return limit
			}
			return at + len(bytes.TrimRight(rest[:i], "\r"))
		case bytes.HasPrefix(rest, []byte("/*")):
			at += bytes.Index(rest[2:], []byte("*/")) + 4
			end = at
			continue
		}
		return end
	}
	return end
}

// remove returns the text without the member m of v, and without the comma that is then
// superfluous.
func (t *jsonText) remove(v *jsonValue, m *jsonMember) []byte {
	i := slices.IndexFunc(v.members, func(other jsonMember) bool { return other.start == m.start })
	start, end := m.start, m.value.end
	if m.comma >= 0 {
		end = m.comma + 1
	}
	end = t.endOfComments(end, v.end-1)
	for start > v.start+1 && slices.Contains([]byte(" \t"), t.text[start-1]) {
		start--
	}
	switch {
	case start > v.start+1 && t.text[start-1] == '\n':
		start--
		if start > v.start+1 && t.text[start-1] == '\r' {
			start--
		}
	case i == 0: // on the line of the brace
		start = m.start
		for end < v.end-1 && t.text[end] == ' ' {
			end++
		}
	}
	if len(v.members) == 1 && len(bytes.TrimSpace(t.text[v.start+1:start])) == 0 {
		inner := t.text[end : v.end-1]
		if len(bytes.TrimSpace(inner)) == 0 {
			start, end = v.start+1, v.end-1
		}
	}
	text := splice(t.text, start, end, "")
	if i > 0 && i == len(v.members)-1 && m.comma < 0 { // the comma before it is one too many
		text = splice(text, v.members[i-1].comma, v.members[i-1].comma+1, "")
	}
	return text
}

// replace returns the text with what render returns instead of the member m, its name
// and value.
func (t *jsonText) replace(m *jsonMember, render func(indent, unit, newline string) string) []byte {
	indent, alone := t.indentAt(m.start)
	added := render("", "", "")
	if alone {
		added = render(indent, t.indentUnit(), t.newline())
	}
	return splice(t.text, m.start, m.value.end, added)
}

// splice returns the text with text[start:end] replaced.
func splice(text []byte, start, end int, with string) []byte {
	return slices.Concat(text[:start], []byte(with), text[end:])
}

// setJSON returns the text with the entry, added or replaced, in the top-level object
// member, which is added if it does not exist and replaces null. It returns the errors of parseJSON and
// findServer.
func setJSON(text []byte, member, name string, entry []field) ([]byte, error) {
	t, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	none, err := t.findNull(member)
	if err != nil {
		return nil, err
	}
	servers, found, err := t.findServer(member, name)
	if err != nil {
		return nil, err
	}
	one := func(indent, unit, newline string) string {
		return jsonString(name) + ": " + renderJSON(entry, indent, unit, newline)
	}
	group := func(indent, unit, newline string) string {
		if newline == "" {
			return jsonString(member) + ": {" + one("", "", "") + "}"
		}
		return jsonString(member) + ": {" + newline + indent + unit + one(indent+unit, unit, newline) + newline + indent + "}"
	}
	switch {
	case none != nil:
		return t.replace(none, group), nil
	case found != nil:
		return t.replace(found, one), nil
	case servers != nil:
		return t.insert(servers, one), nil
	case t.root != nil:
		return t.insert(t.root, group), nil
	}
	newline := t.newline()
	closing, _ := t.indentAt(len(text))
	indent := closing + t.indentUnit()
	return append(slices.Clip(text), "{"+newline+indent+group(indent, t.indentUnit(), newline)+newline+closing+"}"+newline...), nil
}

// removeJSON returns the text without the entry, unchanged if it has no such entry. It
// returns the errors of parseJSON and findServer.
func removeJSON(text []byte, member, name string) ([]byte, error) {
	t, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	servers, found, err := t.findServer(member, name)
	if err != nil || found == nil {
		return text, err
	}
	return t.remove(servers, found), nil
}

// jsonString returns s as a JSON string, in which <, > and & are not escaped.
func jsonString(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s) //nolint:errcheck // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// renderJSON returns the entry as a JSON object with one field a line; all of it on one
// line if newline is empty. unit is the indentation of one level.
func renderJSON(entry []field, indent, unit, newline string) string {
	var members []string
	for _, f := range entry {
		members = append(members, jsonString(f.name)+": "+inlineValue(f.value))
	}
	if newline == "" {
		return "{" + strings.Join(members, ", ") + "}"
	}
	inner := newline + indent + unit
	return "{" + inner + strings.Join(members, ","+inner) + newline + indent + "}"
}

// inlineValue returns the value as JSON on one line, which is also YAML.
func inlineValue(value any) string { return renderInline(value, ": ", jsonString) }

// inlineTOML returns the value as TOML on one line.
func inlineTOML(value any) string { return renderInline(value, " = ", tomlKeyText) }

// renderInline returns the value on one line. name renders the key of a map, between
// comes between key and value. The value is one of field, or what a format decoded.
func renderInline(value any, between string, name func(string) string) string {
	switch v := value.(type) {
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = jsonString(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = renderInline(item, between, name)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var members []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			members = append(members, name(key)+between+renderInline(v[key], between, name))
		}
		return "{" + strings.Join(members, ", ") + "}"
	case string:
		return jsonString(v)
	case nil:
		return "null"
	case float64:
		text, _ := json.Marshal(v) //nolint:errcheck // a decoded number
		return string(text)
	}
	return fmt.Sprint(value)
}
