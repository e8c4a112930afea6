package jsonrpc

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxCanonicalDepth bounds nesting; deeper values have no canonical form.
const maxCanonicalDepth = 100

// Canonical appends a JSON value with its members sorted by name, uniform
// escapes and no white space. Numbers keep their spelling. ok is false, and the
// result is of no use, for a value that is invalid, nested too deep or has a
// repeated member, whose meaning differs between readers.
func Canonical(dst []byte, raw json.RawMessage) (extended []byte, ok bool) {
	return appendCanonical(dst, raw, 0)
}

// appendCanonical is Canonical for a value at that depth. It returns false as Canonical
// does.
func appendCanonical(dst []byte, raw json.RawMessage, depth int) ([]byte, bool) {
	if depth > maxCanonicalDepth || len(raw) == 0 {
		return dst, false
	}
	ok := true
	switch raw[0] {
	case '{':
		members, err := Members(raw)
		if err != nil {
			return dst, false
		}
		slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(dst, m.Name), ':')
			if dst, ok = appendCanonical(dst, m.Value, depth+1); !ok {
				return dst, false
			}
		}
		return append(dst, '}'), true
	case '[':
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return dst, false
		}
		dst = append(dst, '[')
		for i, item := range items {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, ok = appendCanonical(dst, item, depth+1); !ok {
				return dst, false
			}
		}
		return append(dst, ']'), true
	case '"':
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return dst, false
		}
		return AppendString(dst, text), true
	}
	return append(dst, raw...), true
}
