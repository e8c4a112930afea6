package mcpkit

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// decodeNode sets v to a checked node. encoding/json would match names in any
// case, round large numbers in an any, and not decode durations.
func decodeNode(s *schema, n *jsonNode, v reflect.Value, at *argPath) error {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	s = s.resolveRef()
	if n.isNull() && s.kind != kindAny {
		return nil
	}
	var err error
	switch s.kind {
	case kindObject:
		return decodeObject(s, n, v, at)
	case kindMap:
		return decodeMap(s, n, v, at)
	case kindList:
		return decodeList(s, n, v, at)
	case kindAny:
		err = decodeUntyped(n, v)
	case kindString:
		v.SetString(n.str)
	case kindText:
		err = v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.str))
	case kindBytes:
		var data []byte
		data, err = decodeBase64(n.str)
		v.SetBytes(data)
	case kindDuration:
		d, parseErr := parseDuration(n)
		err = parseErr
		v.SetInt(int64(d))
	case kindBoolean:
		v.SetBool(n.boolValue())
	case kindInteger, kindNumber:
		err = decodeNumber(s, n, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", printable(at.String()), err)
	}
	return nil
}

// decodeObject sets the fields of the struct v to the members that were given.
func decodeObject(s *schema, n *jsonNode, v reflect.Value, at *argPath) error {
	for i, p := range s.properties {
		if n.fields[i] == nil {
			continue
		}
		if err := decodeNode(p.schema, n.fields[i], fieldByIndexAllocating(v, p.fieldIndex), at.member(p.name)); err != nil {
			return err
		}
	}
	return nil
}

// fieldByIndexAllocating returns the field of a struct, as reflect's
// FieldByIndex does, and allocates nil embedded pointers on the way.
func fieldByIndexAllocating(v reflect.Value, index []int) reflect.Value {
	for i, x := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}

// decodeMap sets v, a map type, to a new map with the members of n, decoded by s.items.
// It returns the error of the first member that cannot be decoded; at is the place of n
// in the arguments, for the message.
func decodeMap(s *schema, n *jsonNode, v reflect.Value, at *argPath) error {
	out := reflect.MakeMapWithSize(v.Type(), len(n.members))
	for _, m := range n.members {
		value := reflect.New(v.Type().Elem()).Elem()
		if err := decodeNode(s.items, m.value, value, at.member(m.name)); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(m.name).Convert(v.Type().Key()), value)
	}
	v.Set(out)
	return nil
}

// decodeList sets v, a slice or an array, to the items.
func decodeList(s *schema, n *jsonNode, v reflect.Value, at *argPath) error {
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	}
	for i, item := range n.items {
		if err := decodeNode(s.items, item, v.Index(i), at.item(i)); err != nil {
			return err
		}
	}
	return nil
}

// decodeNumber sets v, of a numeric type or json.Number, to n. It returns an
// error for a number that the type cannot hold.
func decodeNumber(s *schema, n *jsonNode, v reflect.Value) error {
	if v.Type() == typeNumber {
		v.SetString(string(n.raw))
		return nil
	}
	if s.kind == kindNumber {
		f, err := strconv.ParseFloat(string(n.raw), 64)
		v.SetFloat(f)
		return err
	}
	value, whole, fits := parseWholeNumber(string(n.raw))
	switch {
	case !whole || !fits:
		return fmt.Errorf("not a 64-bit integer: %s", printable(string(n.raw)))
	case v.CanUint():
		v.SetUint(value.magnitude)
	case value.negative:
		v.SetInt(-int64(value.magnitude))
	default:
		v.SetInt(int64(value.magnitude))
	}
	return nil
}

// decodeUntyped sets an any, a json.RawMessage or a value with its own
// UnmarshalJSON. In an any, a whole number that a float64 would round becomes a
// json.Number.
func decodeUntyped(n *jsonNode, v reflect.Value) error {
	if v.Kind() == reflect.Interface {
		if value := n.goValue(); value != nil {
			v.Set(reflect.ValueOf(value))
		}
		return nil
	}
	return json.Unmarshal(n.raw, v.Addr().Interface())
}

// goValue returns the value of n as encoding/json decodes it into an any,
// except that a whole number that a float64 would round becomes a json.Number.
func (n *jsonNode) goValue() any {
	switch n.kind {
	case '{':
		out := make(map[string]any, len(n.members))
		for _, m := range n.members {
			out[m.name] = m.value.goValue()
		}
		return out
	case '[':
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.goValue()
		}
		return out
	case '"':
		return n.str
	case 't':
		return n.boolValue()
	case '0':
		f, err := strconv.ParseFloat(string(n.raw), 64)
		if value, whole, fits := parseWholeNumber(string(n.raw)); err != nil || whole && (!fits || value.magnitude > 1<<53) {
			return json.Number(n.raw)
		}
		return f
	}
	return nil
}

// decodeBase64 decodes the standard and the URL alphabet, with or without
// padding.
func decodeBase64(text string) ([]byte, error) {
	text = strings.TrimRight(text, "=")
	if strings.ContainsAny(text, "-_") {
		return base64.RawURLEncoding.DecodeString(text)
	}
	return base64.RawStdEncoding.DecodeString(text)
}

// decodeArgs decodes checked arguments into a value of type A. The error is a
// *callerror.ValidationError.
func decodeArgs[A any](t *Tool, n *jsonNode) (A, error) {
	var args A
	if err := decodeNode(t.input, n, reflect.ValueOf(&args).Elem(), nil); err != nil {
		return args, &callerror.ValidationError{Type: callerror.ArgsInvalid, Tool: t.Name(), Detail: err.Error(),
			Err: toolerr.New(toolerr.InvalidParams, "%w", err)}
	}
	return args, nil
}
