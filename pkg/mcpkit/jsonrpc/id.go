package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// errInvalidID is the error of Key for an invalid id.
var errInvalidID = errors.New("an id is a string or an integer")

// Key returns a form of a message id that is equal for all spellings of the
// same id: "a" and "\u0061", 1 and 1.0. Use it to compare ids; echo the
// original bytes. It fails for an invalid id: nil, null, a boolean, an array,
// an object, a fraction, or a number above 2^53 with a point or exponent.
func Key(id json.RawMessage) (string, error) {
	if len(id) == 0 {
		return "", errInvalidID
	}
	switch c := id[0]; {
	case c == '"':
		if !bytes.ContainsRune(id, '\\') {
			return string(id), nil
		}
		var s string
		if err := json.Unmarshal(id, &s); err != nil {
			return "", errInvalidID
		}
		return `"` + s + `"`, nil
	case c == '-' || c >= '0' && c <= '9':
		if !bytes.ContainsAny(id, ".eE") {
			return string(id), nil
		}
		f, err := strconv.ParseFloat(string(id), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return "", errInvalidID
		}
		return strconv.FormatInt(int64(f), 10), nil
	}
	return "", errInvalidID
}
