// Package tree decodes JSON into values that keep the order of members and all digits
// of numbers, and that record which values were read. A decoder reads the values that
// it knows. EachUnread then lists all others, so that no value is lost unnoticed.
package tree

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// maxDepth bounds nesting, so that no input can exhaust the stack. maxValues bounds
// the number of values, because a value takes about a hundred times the memory of its
// text.
const (
	maxDepth  = 300
	maxValues = 1 << 20
)

// A Kind is the JSON type of a value.
type Kind byte

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// A Value is a JSON value. A nil *Value is an absent value: it can be read like any
// other and is empty.
type Value struct {
	Kind    Kind
	Text    string // content of a string, or the literal of a number or boolean
	Items   []*Value
	Members []Member

	raw        []byte // JSON text as received; nil: created here
	brokenText bool   // the string contained half of a surrogate pair
	read       bool   // a decoder has read the value, not always what is in it
}

// A Member is a member of an object.
type Member struct {
	Name  string
	Value *Value
	read  bool // a decoder has taken the member, not always its value
}

// Parse decodes a JSON value. A name that appears twice in an object is an error, and so
// are values above maxDepth and maxValues.
func Parse(data []byte) (*Value, error) {
	if err := jsonrpc.Valid(data); err != nil {
		return nil, err
	}
	p := parser{data: data}
	p.skipSpace()
	return p.parseValue(0)
}

// ParseRequest decodes the body of a request. It returns an error if the body is not JSON
// or its member list is not an array.
func ParseRequest(body []byte, list string) (*Value, error) {
	v, err := Parse(body)
	if err != nil {
		return nil, fmt.Errorf("the request: %w", err)
	}
	if !v.Get(list).Is(Array) {
		return nil, fmt.Errorf("the request has no array %s", list)
	}
	return v, nil
}

// parser parses a text that is known to be valid JSON.
type parser struct {
	data   []byte
	at     int
	values int
}

// skipSpace skips white space.
func (p *parser) skipSpace() {
	for p.at < len(p.data) && strings.IndexByte(" \t\r\n", p.data[p.at]) >= 0 {
		p.at++
	}
}

// parseValue parses the value at the current position. It returns an error above maxDepth or
// maxValues.
func (p *parser) parseValue(depth int) (*Value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d levels deep", maxDepth)
	}
	if p.values++; p.values > maxValues {
		return nil, fmt.Errorf("there are more than %d values", maxValues)
	}
	start, v := p.at, &Value{}
	var err error
	switch c := p.data[p.at]; c {
	case '{':
		v.Kind = Object
		err = p.parseObject(v, depth)
	case '[':
		v.Kind = Array
		err = p.parseArray(v, depth)
	case '"':
		v.Kind = String
		v.Text, v.brokenText = p.parseString()
	default:
		for p.at < len(p.data) && strings.IndexByte(" \t\r\n,]}", p.data[p.at]) < 0 {
			p.at++
		}
		switch v.Text = string(p.data[start:p.at]); c {
		case 'n':
			v.Text = ""
		case 't', 'f':
			v.Kind = Bool
		default:
			v.Kind = Number
		}
	}
	v.raw = p.data[start:p.at:p.at]
	return v, err
}

// parseObject parses the members of an object into v. A repeated name is an error.
func (p *parser) parseObject(v *Value, depth int) error {
	p.at++ // {
	seen := map[string]bool{}
	for p.skipSpace(); p.data[p.at] != '}'; p.skipSpace() {
		if p.data[p.at] == ',' {
			p.at++
			continue
		}
		name, _ := p.parseString()
		if seen[name] {
			return fmt.Errorf("member %q appears more than once", name)
		}
		seen[name] = true
		p.skipSpace()
		p.at++ // :
		p.skipSpace()
		value, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		v.Members = append(v.Members, Member{Name: name, Value: value})
	}
	p.at++
	return nil
}

// parseArray parses the items of an array into v.
func (p *parser) parseArray(v *Value, depth int) error {
	p.at++ // [
	for p.skipSpace(); p.data[p.at] != ']'; p.skipSpace() {
		if p.data[p.at] == ',' {
			p.at++
			continue
		}
		item, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
	}
	p.at++
	return nil
}

// parseString decodes a string. loneSurrogate means that half of a surrogate pair became U+FFFD.
func (p *parser) parseString() (text string, loneSurrogate bool) {
	start, escaped := p.at, false
	for p.at++; p.data[p.at] != '"'; p.at++ {
		if p.data[p.at] == '\\' {
			escaped = true
			p.at++
		}
	}
	p.at++
	raw := p.data[start:p.at]
	if !escaped {
		return string(raw[1 : len(raw)-1]), false
	}
	if json.Unmarshal(raw, &text) != nil {
		return string(raw), true // impossible: the text is valid
	}
	return text, hasHalfPair(raw)
}

// hasHalfPair reports whether a JSON string has an escaped surrogate without its other
// half.
func hasHalfPair(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		switch unit := parseHex(raw, i+1); {
		case unit >= 0xd800 && unit < 0xdc00:
			if i+10 >= len(raw) || raw[i+5] != '\\' || raw[i+6] != 'u' {
				return true
			}
			if low := parseHex(raw, i+7); low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 10
		case unit >= 0xdc00 && unit < 0xe000:
			return true
		default:
			i += 4
		}
	}
	return false
}

// parseHex returns the number of the four hex digits at a position.
func parseHex(raw []byte, at int) uint64 {
	n, _ := strconv.ParseUint(string(raw[at:at+4]), 16, 32) //nolint:errcheck // the text is valid
	return n
}

// Append appends the JSON text of v to dst, without white space, and returns it; null for
// nil.
func (v *Value) Append(dst []byte) []byte {
	if v == nil {
		return append(dst, "null"...)
	}
	switch v.Kind {
	case Bool, Number:
		return append(dst, v.Text...)
	case String:
		return jsonrpc.AppendString(dst, v.Text)
	case Array:
		dst = append(dst, '[')
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.Append(dst)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i, m := range v.Members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsonrpc.AppendString(dst, m.Name), ':')
			dst = m.Value.Append(dst)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// JSON returns the JSON text of v without white space; null for nil.
func (v *Value) JSON() json.RawMessage { return v.Append(nil) }

// MarshalJSON returns the JSON text of v.
func (v *Value) MarshalJSON() ([]byte, error) { return v.Append(nil), nil }

// Get returns the member called name without marking it as read; nil: it is absent. A
// member that is null is not nil.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Set sets the member called name. A new member becomes the last one.
func (v *Value) Set(name string, value *Value) {
	for i := range v.Members {
		if v.Members[i].Name == name {
			v.Members[i].Value = value
			return
		}
	}
	v.Members = append(v.Members, Member{Name: name, Value: value})
}

// Delete removes a member of an object.
func (v *Value) Delete(name string) {
	v.Members = slices.DeleteFunc(v.Members, func(m Member) bool { return m.Name == name })
}

// Clone returns a deep copy in which no value is marked as read; nil for nil.
func (v *Value) Clone() *Value {
	if v == nil {
		return nil
	}
	c := &Value{Kind: v.Kind, Text: v.Text, brokenText: v.brokenText}
	for _, item := range v.Items {
		c.Items = append(c.Items, item.Clone())
	}
	for _, m := range v.Members {
		c.Members = append(c.Members, Member{Name: m.Name, Value: m.Value.Clone()})
	}
	return c
}

// Is reports whether v is present and has the kind.
func (v *Value) Is(kind Kind) bool { return v != nil && v.Kind == kind }

// True reports whether v is the literal true.
func (v *Value) True() bool { return v.Is(Bool) && v.Text == "true" }

// False reports whether v is the literal false.
func (v *Value) False() bool { return v.Is(Bool) && v.Text == "false" }

// Str returns a string value.
func Str(text string) *Value { return &Value{Kind: String, Text: text} }

// Boolean returns a boolean value.
func Boolean(b bool) *Value { return &Value{Kind: Bool, Text: strconv.FormatBool(b)} }

// Int returns a number value.
func Int(n int) *Value { return &Value{Kind: Number, Text: strconv.Itoa(n)} }

// List returns an array value.
func List(items ...*Value) *Value { return &Value{Kind: Array, Items: items} }

// Strs returns an array of strings.
func Strs(texts ...string) *Value {
	list := &Value{Kind: Array}
	for _, text := range texts {
		list.Items = append(list.Items, Str(text))
	}
	return list
}

// Obj returns an object. pairs are names and values in turn; nil values are left out.
func Obj(pairs ...any) *Value {
	object := &Value{Kind: Object}
	for i := 0; i+1 < len(pairs); i += 2 {
		if value, ok := pairs[i+1].(*Value); ok && value != nil {
			object.Members = append(object.Members, Member{Name: pairs[i].(string), Value: value})
		}
	}
	return object
}

// Raw returns the tree of a JSON text that is known to be valid: nil for an empty text,
// null for one that Parse refuses.
func Raw(data json.RawMessage) *Value {
	if len(data) == 0 {
		return nil
	}
	v, err := Parse(data)
	if err != nil {
		return &Value{}
	}
	return v
}

// PeekItems returns the items of an array without marking it as read; none for any other
// value and nil.
func (v *Value) PeekItems() []*Value {
	if v == nil {
		return nil
	}
	return v.Items
}

// PeekMembers returns the members of an object without marking it as read; none for any
// other value and nil.
func (v *Value) PeekMembers() []Member {
	if v == nil {
		return nil
	}
	return v.Members
}

// Float returns a number value.
func Float(f float64) *Value {
	return &Value{Kind: Number, Text: strconv.FormatFloat(f, 'g', -1, 64)}
}
