package mcpkit

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"
)

// coerce converts a value of the wrong type into the value that was clearly
// meant, and adds a note that says so. It reports false if the meaning is not
// clear.
func (c *checker) coerce(s *schema, n *node, at *path) (*node, bool) {
	if !c.tolerant {
		return nil, false
	}
	switch s.kind {
	case kindString:
		return c.commandFromList(s, n, at)
	case kindInteger, kindNumber:
		text := strings.TrimSpace(n.str)
		if n.kind != '"' || text == "" || !number(text[0]) || !json.Valid([]byte(text)) {
			return nil, false
		}
		c.note(at, "%s taken as the number %s", quoted(n.str), quotable(text))
		return &node{kind: '0', raw: []byte(text)}, true
	case kindBoolean:
		text := strings.ToLower(strings.TrimSpace(n.str))
		if n.kind != '"' || text != "true" && text != "false" {
			return nil, false
		}
		c.note(at, "%s taken as %s", quoted(n.str), text)
		return &node{kind: 't', raw: []byte(text)}, true
	case kindDuration:
		return c.durationFromNumber(n, at)
	case kindList:
		return c.listFromValue(s, n, at)
	case kindObject, kindMap:
		if inner, ok := unwrap(n, '{'); ok {
			c.note(at, "a string parsed as an object")
			return inner, true
		}
		return c.objectFromString(s, n, at)
	}
	return nil, false
}

// objectFromString accepts a bare string instead of an object whose only
// required member is a string: "a.go" instead of {"file_path":"a.go"}.
func (c *checker) objectFromString(s *schema, n *node, at *path) (*node, bool) {
	if at == nil || at.up == nil { // all the arguments
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
	c.note(at, "%s taken as %s", quoted(n.str), name)
	raw := append(append([]byte("{"), encode(name)...), ':')
	raw = append(append(raw, n.raw...), '}')
	return &node{kind: '{', raw: raw, members: []member{{name, n}}}, true
}

// commandFromList accepts a list of words instead of a shell command: Codex
// sends ["bash","-lc","make test"].
func (c *checker) commandFromList(s *schema, n *node, at *path) (*node, bool) {
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
	c.note(at, "a list of words joined to the command %s", quoted(text))
	return &node{kind: '"', raw: encode(text), str: text}, true
}

// shellCommand returns words as shell code: for a shell and -c, the code
// itself; else the words, quoted as needed.
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

// durationFromNumber accepts a bare number instead of a duration, as other
// tools do.
func (c *checker) durationFromNumber(n *node, at *path) (*node, bool) {
	value, whole, fits := wholeNumber(string(n.raw))
	if n.kind != '0' || !whole || !fits || value.magnitude > math.MaxInt64/uint64(time.Millisecond) {
		return nil, false
	}
	d := time.Duration(value.bound().integer) * time.Millisecond
	c.note(at, "%s taken as milliseconds: %s", value.text(), d)
	return &node{kind: '"', raw: encode(d.String()), str: d.String()}, true
}

// listFromValue accepts a bare value instead of a list, and a string that holds
// a list as JSON.
func (c *checker) listFromValue(s *schema, n *node, at *path) (*node, bool) {
	if inner, ok := unwrap(n, '['); ok {
		trial := checker{tolerant: true}
		if trial.check(s, inner, at); len(trial.faults) == 0 {
			c.note(at, "a string parsed as a list")
			return inner, true
		}
	}
	if n.kind == '"' && n.str == "" {
		c.note(at, `"" taken as an empty list`)
		return &node{kind: '[', raw: []byte("[]")}, true
	}
	trial := checker{tolerant: true}
	if trial.check(s.items, n, at.at(0)); len(trial.faults) > 0 || n.isNull() {
		return nil, false
	}
	if !s.acceptsBare {
		c.note(at, "%s taken as a list with one item", n.describe())
	}
	raw := append(append([]byte{'['}, n.raw...), ']')
	return &node{kind: '[', raw: raw, items: []*node{n}}, true
}

// unwrap parses JSON that was sent as a string. It reports false unless the
// value is of kind want.
func unwrap(n *node, want byte) (*node, bool) {
	text := strings.TrimSpace(n.str)
	if n.kind != '"' || text == "" || text[0] != want {
		return nil, false
	}
	inner, err := parseJSON([]byte(text))
	return inner, err == nil && inner.kind == want
}
