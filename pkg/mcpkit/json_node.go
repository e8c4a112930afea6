package mcpkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// jsonNode is one JSON value. It keeps what encoding/json drops: the exact
// bytes of numbers, the case and repetition of names, and lone surrogates.
type jsonNode struct {
	kind             byte         // the first byte: { [ " t (true, false) n (null), or 0 for any number
	raw              []byte       // the bytes of the value
	str              string       // the decoded text of a string
	hasLoneSurrogate bool         // the string has half of a surrogate pair
	items            []*jsonNode  // of a list
	members          []jsonMember // of an object, in order, with repetitions

	// fields are the values of a checked object, in the order of the schema's
	// properties; nil: absent.
	fields []*jsonNode
}

// jsonMember is one member of an object.
type jsonMember struct {
	name  string
	value *jsonNode
}

// boolValue reports whether the value is true; n must be a boolean.
func (n *jsonNode) boolValue() bool { return n.raw[0] == 't' }

// isNull reports whether the value is null, which means "not given".
func (n *jsonNode) isNull() bool { return n.kind == 'n' }

// maxDepth bounds the nesting of arguments, so that no input can exhaust the
// stack.
const maxDepth = 200

// errTooDeep is the error of parseJSON for values nested more than maxDepth
// levels deep.
var errTooDeep = fmt.Errorf("nested more than %d levels deep", maxDepth)

// parseJSON parses exactly one JSON value. The error says what is wrong and, if known, at
// which byte: invalid UTF-8, invalid JSON, or more than one value. The nodes alias data,
// which must not change.
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

// firstInvalidUTF8 returns the index of the first byte that is not UTF-8, or
// len(data).
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

// jsonParser parses text that is known to be valid JSON.
type jsonParser struct {
	data []byte
	pos  int // index of the next byte
}

// skipSpace moves p.at over white space.
func (p *jsonParser) skipSpace() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

// parseValue parses the value at p.pos, and moves p.pos after it. depth counts the values
// around it. The error is errTooDeep, or the error of decoding a string.
func (p *jsonParser) parseValue(depth int) (*jsonNode, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	start := p.pos
	n := &jsonNode{}
	var err error
	switch c := p.data[p.pos]; c {
	case '{':
		n.kind, err = c, p.parseObject(n, depth)
	case '[':
		n.kind, err = c, p.parseList(n, depth)
	case '"':
		n.kind = c
		n.str, n.hasLoneSurrogate, err = p.parseString()
	case 't', 'n':
		n.kind = c
		p.pos += 4
	case 'f':
		n.kind = 't'
		p.pos += 5
	default:
		n.kind = '0'
		for p.pos < len(p.data) && isNumberByte(p.data[p.pos]) {
			p.pos++
		}
	}
	n.raw = p.data[start:p.pos]
	return n, err
}

// isNumberByte reports whether c can be part of a JSON number.
func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// parseObject parses the object at p.pos into n.members. depth counts the values around
// it. It returns the errors of parseValue.
func (p *jsonParser) parseObject(n *jsonNode, depth int) error {
	for p.pos++; ; p.pos++ {
		p.skipSpace()
		if p.data[p.pos] == '}' { // only of an empty object
			break
		}
		name, _, err := p.parseString()
		if err != nil {
			return err
		}
		p.skipSpace()
		p.pos++ // the colon
		p.skipSpace()
		value, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		n.members = append(n.members, jsonMember{name, value})
		if p.skipSpace(); p.data[p.pos] == '}' {
			break
		}
	}
	p.pos++
	return nil
}

// parseList parses the list at p.pos into n.items. depth counts the values around it. It
// returns the errors of parseValue.
func (p *jsonParser) parseList(n *jsonNode, depth int) error {
	for p.pos++; ; p.pos++ {
		p.skipSpace()
		if p.data[p.pos] == ']' {
			break
		}
		item, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
		if p.skipSpace(); p.data[p.pos] == ']' {
			break
		}
	}
	p.pos++
	return nil
}

// parseString parses the string at p.pos, and moves p.pos after it. loneSurrogate is true
// if an escape is half of a surrogate pair, which encoding/json would silently replace.
func (p *jsonParser) parseString() (s string, loneSurrogate bool, err error) {
	start := p.pos
	escaped := false
	for p.pos++; p.data[p.pos] != '"'; p.pos++ {
		if p.data[p.pos] == '\\' {
			escaped = true
			p.pos++
		}
	}
	p.pos++
	raw := p.data[start:p.pos]
	if !escaped {
		return string(raw[1 : len(raw)-1]), false, nil
	}
	err = json.Unmarshal(raw, &s)
	return s, hasLoneSurrogate(raw), err
}

// hasLoneSurrogate reports whether the escapes of a JSON string have half of a
// surrogate pair.
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

// stringNode returns the JSON string of s.
func stringNode(s string) *jsonNode { return &jsonNode{kind: '"', raw: mustMarshal(s), str: s} }

// objectNode returns the JSON object with these members, which must have
// different names.
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
