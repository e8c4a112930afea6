package mcpkit

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"
)

// coerce converts a value whose type does not fit s into the value that was
// clearly meant, and notes that. ok is false if the meaning is not clear.
func (c *checker) coerce(s *schema, n *jsonNode, at *argPath) (converted *jsonNode, ok bool) {
	if !c.tolerant {
		return nil, false
	}
	switch s.kind {
	case kindString:
		return c.commandFromList(s, n, at)
	case kindInteger, kindNumber:
		text := strings.TrimSpace(n.str)
		if n.kind != '"' || text == "" || !isNumberByte(text[0]) || !json.Valid([]byte(text)) {
			return nil, false
		}
		c.notef(at, "%s taken as the number %s", inQuotes(n.str), printable(text))
		return &jsonNode{kind: '0', raw: []byte(text)}, true
	case kindBoolean:
		text := strings.ToLower(strings.TrimSpace(n.str))
		if n.kind != '"' || text != "true" && text != "false" {
			return nil, false
		}
		c.notef(at, "%s taken as %s", inQuotes(n.str), text)
		return &jsonNode{kind: 't', raw: []byte(text)}, true
	case kindDuration:
		return c.durationFromNumber(n, at)
	case kindList:
		return c.listFromValue(s, n, at)
	case kindObject, kindMap:
		if inner, ok := parseStringAs(n, '{'); ok {
			c.notef(at, "a string parsed as an object")
			return inner, true
		}
		return c.objectFromString(s, n, at)
	}
	return nil, false
}

// objectFromString accepts a bare string for an object whose only required member is a
// string: "a.go" for {"file_path":"a.go"}. It does not apply to the arguments as a
// whole. ok is false for other values and schemas.
func (c *checker) objectFromString(s *schema, n *jsonNode, at *argPath) (object *jsonNode, ok bool) {
	if at == nil || at.parent == nil { // all the arguments
		return nil, false
	}
	only := -1
	for i := range s.properties {
		if s.properties[i].required {
			if only >= 0 {
				return nil, false
			}
			only = i
		}
	}
	if n.kind != '"' || only < 0 || s.properties[only].kind != kindString {
		return nil, false
	}
	name := s.properties[only].name
	c.notef(at, "%s taken as %s", inQuotes(n.str), name)
	raw := append(append([]byte("{"), mustMarshal(name)...), ':')
	raw = append(append(raw, n.raw...), '}')
	return &jsonNode{kind: '{', raw: raw, members: []jsonMember{{name, n}}}, true
}

// commandFromList accepts a list of words for a shell command, if s allows it: Codex
// sends ["bash","-lc","make test"]. ok is false for other values and schemas.
func (c *checker) commandFromList(s *schema, n *jsonNode, at *argPath) (command *jsonNode, ok bool) {
	if !s.acceptsWords || n.kind != '[' || len(n.items) == 0 {
		return nil, false
	}
	var words []string
	for _, item := range n.items {
		if item.kind != '"' || item.hasLoneSurrogate {
			return nil, false
		}
		words = append(words, item.str)
	}
	text := shellCommand(words)
	c.notef(at, "a list of words joined to the command %s", inQuotes(text))
	return &jsonNode{kind: '"', raw: mustMarshal(text), str: text}, true
}

// shellCommand returns words as shell code: of a shell with -c and code, the
// code; otherwise the words, quoted as needed.
func shellCommand(words []string) string {
	if len(words) == 3 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") && !strings.HasPrefix(words[1], "--") &&
		slices.Contains([]string{"bash", "/bin/bash", "/usr/bin/bash", "sh", "/bin/sh", "/usr/bin/sh"}, words[0]) {
		return words[2]
	}
	var parts []string
	for _, word := range words {
		plain := word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !isNameRune(r, "_-./:@%+,") })
		if !plain {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		parts = append(parts, word)
	}
	return strings.Join(parts, " ")
}

// durationFromNumber accepts a bare number for a duration, in milliseconds, as other
// tools do. ok is false for other values.
func (c *checker) durationFromNumber(n *jsonNode, at *argPath) (duration *jsonNode, ok bool) {
	value, whole, fits := parseWholeNumber(string(n.raw))
	if n.kind != '0' || !whole || !fits || value.magnitude > math.MaxInt64/uint64(time.Millisecond) {
		return nil, false
	}
	d := time.Duration(value.asBound().integer) * time.Millisecond
	c.notef(at, "%s taken as milliseconds: %s", value.decimal(), d)
	return &jsonNode{kind: '"', raw: mustMarshal(d.String()), str: d.String()}, true
}

// listFromValue accepts for a list: a string that holds a list as JSON, the empty string
// for an empty list, and a bare value for a list with one item. It notes what it took. ok
// is false for other values.
func (c *checker) listFromValue(s *schema, n *jsonNode, at *argPath) (list *jsonNode, ok bool) {
	if inner, ok := parseStringAs(n, '['); ok {
		trial := checker{tolerant: true}
		if trial.check(s, inner, at); len(trial.faults) == 0 {
			c.notef(at, "a string parsed as a list")
			return inner, true
		}
	}
	if n.kind == '"' && n.str == "" {
		c.notef(at, `"" taken as an empty list`)
		return &jsonNode{kind: '[', raw: []byte("[]")}, true
	}
	trial := checker{tolerant: true}
	if trial.check(s.items, n, at.item(0)); len(trial.faults) > 0 || n.isNull() {
		return nil, false
	}
	if !s.acceptsBare {
		c.notef(at, "%s taken as a list with one item", n.describe())
	}
	raw := append(append([]byte{'['}, n.raw...), ']')
	return &jsonNode{kind: '[', raw: raw, items: []*jsonNode{n}}, true
}

// parseStringAs parses JSON that was sent as a string. ok is false unless the
// string holds a value of kind wantKind, as in jsonNode.kind.
func parseStringAs(n *jsonNode, wantKind byte) (inner *jsonNode, ok bool) {
	text := strings.TrimSpace(n.str)
	if n.kind != '"' || text == "" || text[0] != wantKind {
		return nil, false
	}
	inner, err := parseJSON([]byte(text))
	return inner, err == nil && inner.kind == wantKind
}
