package jsonrpc

import (
	"bytes"
	"encoding/json"
	"slices"
)

// SetMember returns object, a JSON object, with a member set to value: it
// replaces the member of that name or appends a new one. Other bytes stay
// unchanged. It fails if object is not a valid object. object itself does not
// change.
func SetMember(object []byte, name string, value json.RawMessage) ([]byte, error) {
	members, err := Members(object)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Name == name {
			return slices.Concat(object[:m.Start], value, object[m.End:]), nil
		}
	}
	end := bytes.LastIndexByte(object, '}')
	out := append(make([]byte, 0, len(object)+len(name)+len(value)+4), object[:end]...)
	if len(members) > 0 {
		out = append(out, ',')
	}
	out = AppendString(out, name)
	out = append(out, ':')
	out = append(out, value...)
	return append(out, object[end:]...), nil
}
