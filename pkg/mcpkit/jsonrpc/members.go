package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds nesting, so that a hostile line cannot exhaust the stack.
const maxDepth = 1000

// maxMembers bounds the members that Members returns, since it compares their
// names pairwise.
const maxMembers = 4096

// A Member is one member of a JSON object.
type Member struct {
	Name       string          // decoded
	Value      json.RawMessage // aliases the object
	Start, End int             // position of the value in the object
}

// errSyntax is wrapped by the errors of Valid and Members for bytes that are
// not JSON.
var errSyntax = errors.New("not JSON")

// syntaxError returns an error, wrapping errSyntax, which says what is wrong at
// the byte offset pos.
func syntaxError(pos int, what string) error {
	return fmt.Errorf("%w at byte %d: %s", errSyntax, pos, what)
}

// A duplicateError is the error for a member that appears more than once.
type duplicateError struct{ name string }

func (e *duplicateError) Error() string {
	return fmt.Sprintf("member %q appears more than once", e.name)
}

// isDuplicate reports whether err is or wraps a duplicateError.
func isDuplicate(err error) bool {
	var d *duplicateError
	return errors.As(err, &d)
}

// MemberOf returns the value of an object's member. The name must match
// exactly, including case. It returns nil if there is no such member, or if
// object is not a valid object or has a repeated name.
func MemberOf(object []byte, name string) json.RawMessage {
	members, err := Members(object)
	if err != nil {
		return nil
	}
	for _, m := range members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Members splits one JSON object into its members, in order, and validates the
// whole object. A repeated name is an error.
func Members(object []byte) ([]Member, error) {
	var buf [8]Member
	members, err := appendMembers(buf[:0], object, nil)
	if err != nil {
		return nil, err
	}
	return append([]Member(nil), members...), nil
}

// Valid returns an error unless b is exactly one JSON value in UTF-8.
func Valid(b []byte) error {
	if !utf8.Valid(b) {
		return fmt.Errorf("%w: the text is not valid UTF-8", errSyntax)
	}
	end, err := skipValue(b, skipSpace(b, 0), 0)
	if err != nil {
		return err
	}
	if end = skipSpace(b, end); end != len(b) {
		return syntaxError(end, "more text after the value")
	}
	return nil
}

// appendMembers appends the members of the object b. With a duplicateError it
// still returns all of them. If names is not nil, it gets the member names of
// the member "result".
func appendMembers(members []Member, b []byte, names *NameSet) ([]Member, error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("%w: the text is not valid UTF-8", errSyntax)
	}
	pos := skipSpace(b, 0)
	if pos >= len(b) || b[pos] != '{' {
		return nil, syntaxError(pos, "expected {")
	}
	var twice error
	end, err := eachMember(b, pos, 0, func(name string, start int) (end int, err error) {
		if names != nil && name == "result" && start < len(b) && b[start] == '{' {
			end, err = names.scanObject(b, start)
		} else {
			end, err = skipValue(b, start, 1)
		}
		if err != nil {
			return 0, err
		}
		if len(members) == maxMembers {
			return 0, fmt.Errorf("%w: more than %d members", errSyntax, maxMembers)
		}
		for _, m := range members {
			if m.Name == name {
				twice = &duplicateError{name}
			}
		}
		members = append(members, Member{name, b[start:end:end], start, end})
		return end, nil
	})
	if err != nil {
		return nil, err
	}
	if end = skipSpace(b, end); end != len(b) {
		return nil, syntaxError(end, "more text after the object")
	}
	return members, twice
}

// eachMember scans the object at pos and returns the position after it. visit, unless
// nil, gets each decoded name and the start of its value, and must return the value's
// end. depth counts the values around the object.
func eachMember(b []byte, pos, depth int, visit func(name string, start int) (end int, err error)) (after int, err error) {
	pos = skipSpace(b, pos+1)
	if pos < len(b) && b[pos] == '}' {
		return pos + 1, nil
	}
	for {
		if pos >= len(b) || b[pos] != '"' {
			return 0, syntaxError(pos, "expected a member name")
		}
		nameEnd, escaped, err := skipString(b, pos)
		if err != nil {
			return 0, err
		}
		colon := skipSpace(b, nameEnd)
		if colon >= len(b) || b[colon] != ':' {
			return 0, syntaxError(colon, "expected :")
		}
		start := skipSpace(b, colon+1)
		var end int
		if visit == nil {
			end, err = skipValue(b, start, depth+1)
		} else {
			var name string
			if name, err = decodeString(b[pos:nameEnd], escaped); err != nil {
				return 0, syntaxError(pos, err.Error())
			}
			end, err = visit(name, start)
		}
		if err != nil {
			return 0, err
		}
		pos = skipSpace(b, end)
		switch {
		case pos < len(b) && b[pos] == ',':
			pos = skipSpace(b, pos+1)
		case pos < len(b) && b[pos] == '}':
			return pos + 1, nil
		default:
			return 0, syntaxError(pos, "expected , or }")
		}
	}
}

// decodeString decodes a JSON string. escaped says that it has escapes. Member
// names of usual messages need no allocation.
func decodeString(quoted []byte, escaped bool) (string, error) {
	if escaped {
		var s string
		err := json.Unmarshal(quoted, &s)
		return s, err
	}
	switch plain := quoted[1 : len(quoted)-1]; string(plain) {
	case "jsonrpc":
		return "jsonrpc", nil
	case "id":
		return "id", nil
	case "method":
		return "method", nil
	case "params":
		return "params", nil
	case "result":
		return "result", nil
	case "name":
		return "name", nil
	case "arguments":
		return "arguments", nil
	case "_meta":
		return "_meta", nil
	case "content":
		return "content", nil
	case "isError":
		return "isError", nil
	case "structuredContent":
		return "structuredContent", nil
	case "resultType":
		return "resultType", nil
	default:
		return string(plain), nil
	}
}

// skipSpace returns the position of the first byte from pos on that is not
// white space.
func skipSpace(b []byte, pos int) int {
	for pos < len(b) && (b[pos] == ' ' || b[pos] == '\t' || b[pos] == '\n' || b[pos] == '\r') {
		pos++
	}
	return pos
}

// Items splits one JSON array into its items, which alias it. It validates the whole
// array: the error says at which byte it is not valid, or that it is no array.
func Items(array []byte) ([]json.RawMessage, error) {
	if !utf8.Valid(array) {
		return nil, fmt.Errorf("%w: the text is not valid UTF-8", errSyntax)
	}
	pos := skipSpace(array, 0)
	if pos >= len(array) || array[pos] != '[' {
		return nil, syntaxError(pos, "expected [")
	}
	var items []json.RawMessage
	end, err := eachItem(array, pos, 0, func(start int) (int, error) {
		end, err := skipValue(array, start, 1)
		if err == nil {
			items = append(items, array[start:end:end])
		}
		return end, err
	})
	if err != nil {
		return nil, err
	}
	if end = skipSpace(array, end); end != len(array) {
		return nil, syntaxError(end, "more text after the array")
	}
	return items, nil
}
