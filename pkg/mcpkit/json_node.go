package mcpkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// node is one JSON value. It keeps what encoding/json drops: the exact bytes of
// numbers, the case and repetition of names, and lone surrogates.
type jsonNode struct {
	kind             byte   // { [ " 0 t n
	raw              []byte // the value as received
	str              string // of a string: its decoded text
	hasLoneSurrogate bool   // the string has a lone surrogate
	items            []*jsonNode
	members          []jsonMember
	fields           []*jsonNode // of a checked object: parallel to the schema's properties, nil if absent
}

type jsonMember struct {
	name  string
	value *jsonNode
}

func (n *jsonNode) boolValue() bool { return n.raw[0] == 't' }

// isNull reports whether the value is null, which means "not given".
func (n *jsonNode) isNull() bool { return n.kind == 'n' }

// maxDepth bounds the nesting of arguments, so that no input can exhaust the
// stack.
const maxDepth = 200

var errTooDeep = fmt.Errorf("nested more than %d levels deep", maxDepth)

// parseJSON parses one value. The nodes alias data, which must not change.
func parseJSON(data []byte) (*jsonNode, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("invalid UTF-8 at byte %d", firstInvalidUTF8(data))
	}
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("not valid JSON at byte %d: %w", syntax.Offset, err)
		}
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	p := jsonParser{data: data}
	p.skipSpace()
	return p.parseValue(0)
}

func firstInvalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return len(data)
}

// parser walks text that has been validated as JSON.
type jsonParser struct {
	data []byte
	at   int
}

func (p *jsonParser) skipSpace() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

func (p *jsonParser) parseValue(depth int) (*jsonNode, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	start := p.at
	n := &jsonNode{}
	var err error
	switch c := p.data[p.at]; c {
	case '{':
		n.kind, err = c, p.parseObject(n, depth)
	case '[':
		n.kind, err = c, p.parseList(n, depth)
	case '"':
		n.kind = c
		n.str, n.hasLoneSurrogate, err = p.parseString()
	case 't', 'n':
		n.kind = c
		p.at += 4
	case 'f':
		n.kind = 't'
		p.at += 5
	default:
		n.kind = '0'
		for p.at < len(p.data) && isNumberByte(p.data[p.at]) {
			p.at++
		}
	}
	n.raw = p.data[start:p.at]
	return n, err
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

func (p *jsonParser) parseObject(n *jsonNode, depth int) error {
	for p.at++; ; p.at++ {
		p.skipSpace()
		if p.data[p.at] == '}' { // only of an empty object
			break
		}
		name, _, err := p.parseString()
		if err != nil {
			return err
		}
		p.skipSpace()
		p.at++ // the colon
		p.skipSpace()
		value, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		n.members = append(n.members, jsonMember{name, value})
		if p.skipSpace(); p.data[p.at] == '}' {
			break
		}
	}
	p.at++
	return nil
}

func (p *jsonParser) parseList(n *jsonNode, depth int) error {
	for p.at++; ; p.at++ {
		p.skipSpace()
		if p.data[p.at] == ']' {
			break
		}
		item, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
		if p.skipSpace(); p.data[p.at] == ']' {
			break
		}
	}
	p.at++
	return nil
}

// text reads a string. torn reports a lone surrogate, which encoding/json would
// replace silently.
func (p *jsonParser) parseString() (s string, loneSurrogate bool, err error) {
	start := p.at
	escaped := false
	for p.at++; p.data[p.at] != '"'; p.at++ {
		if p.data[p.at] == '\\' {
			escaped = true
			p.at++
		}
	}
	p.at++
	raw := p.data[start:p.at]
	if !escaped {
		return string(raw[1 : len(raw)-1]), false, nil
	}
	err = json.Unmarshal(raw, &s)
	return s, hasLoneSurrogate(raw), err
}

func hasLoneSurrogate(raw []byte) bool {
	high := false // the previous escape was the first half of a pair
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			if high {
				return true
			}
			continue
		}
		i++
		var unit uint64
		if raw[i] == 'u' && i+4 < len(raw) {
			unit, _ = strconv.ParseUint(string(raw[i+1:i+5]), 16, 32) // valid JSON: cannot fail
			i += 4
		}
		low := unit >= 0xDC00 && unit < 0xE000
		if low != high {
			return true
		}
		high = unit >= 0xD800 && unit < 0xDC00
	}
	return high
}

func stringNode(s string) *jsonNode { return &jsonNode{kind: '"', raw: mustMarshal(s), str: s} }

func objectNode(members []jsonMember) *jsonNode {
	raw := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(append(append(raw, mustMarshal(m.name)...), ':'), m.value.raw...)
	}
	return &jsonNode{kind: '{', raw: append(raw, '}'), members: members}
}
