package jsonrpc

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal, with its errors, without the escapes for < > &: source files
// often have them, and each would take six bytes.
func Marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
