package jsonrpc

import (
	"encoding/json"
	"slices"
)

// Unambiguous reports whether Canonical has a form for the value: it is valid, has no
// repeated member and is not nested too deep. It takes less time than Canonical.
func Unambiguous(raw json.RawMessage) bool {
	if Valid(raw) != nil {
		return false
	}
	end, err := scanUnambiguous(raw, skipSpace(raw, 0), 0)
	return err == nil && end > 0
}

// scanUnambiguous returns the position after the value at pos. It returns an error if the
// value is ambiguous. depth counts the values around it.
func scanUnambiguous(b []byte, pos, depth int) (after int, err error) {
	if depth > maxCanonicalDepth {
		return 0, syntaxError(pos, "nested too deep")
	}
	switch b[pos] {
	case '{':
		var buf [16]string
		names := buf[:0]
		return eachMember(b, pos, depth, func(name string, start int) (int, error) {
			if slices.Contains(names, name) || len(names) == maxMembers {
				return 0, &duplicateError{name}
			}
			names = append(names, name)
			return scanUnambiguous(b, start, depth+1)
		})
	case '[':
		return eachItem(b, pos, depth, func(start int) (int, error) { return scanUnambiguous(b, start, depth+1) })
	}
	return skipValue(b, pos, depth)
}
