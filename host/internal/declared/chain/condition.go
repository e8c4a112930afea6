package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Condition is the condition of a step with branches. It holds if all of its tests
// succeed; without a test, if the value is truthy.
type Condition struct {
	Value json.RawMessage // with references

	Equals, NotEquals, Contains json.RawMessage // nil: not tested
	In                          []json.RawMessage
	Above, Below                json.RawMessage // numbers; nil: not tested
	Exists                      *bool
}

// validate returns an error if the condition has no value, or its bounds are no
// numbers. path names it.
func (c Condition) validate(path string) error {
	if c.Value == nil {
		return fmt.Errorf("%s.value: is missing", path)
	}
	for _, bound := range []struct {
		name  string
		value json.RawMessage
	}{{"above", c.Above}, {"below", c.Below}} {
		if bound.value == nil {
			continue
		}
		if _, ok := number(bound.value); !ok {
			return fmt.Errorf("%s.%s: want a number", path, bound.name)
		}
	}
	return nil
}

// holds reports whether all tests of the condition succeed or, without a test, whether
// the value is truthy. A value that cannot be built from its references, or null, does
// not exist: Exists tests for that, and if it asks for a missing value the other tests
// are skipped. Without Exists, a value that cannot be built is an error.
func (c Condition) holds(s scope) (bool, error) {
	value, err := s.expand(c.Value)
	there := err == nil && string(value) != "null"
	if c.Exists != nil {
		if there != *c.Exists {
			return false, nil
		}
		if !there {
			return true, nil
		}
	}
	if err != nil {
		return false, err
	}
	asked := c.Exists != nil
	check := func(given json.RawMessage, test func() bool) bool {
		if given == nil {
			return true
		}
		asked = true
		return test()
	}
	ok := check(c.Equals, func() bool { return isEqual(value, c.Equals) }) &&
		check(c.NotEquals, func() bool { return !isEqual(value, c.NotEquals) }) &&
		check(c.Contains, func() bool { return contains(value, c.Contains) }) &&
		check(c.Above, func() bool { return compare(value, c.Above) > 0 }) &&
		check(c.Below, func() bool { return compare(value, c.Below) < 0 })
	if ok && c.In != nil {
		asked = true
		ok = false
		for _, one := range c.In {
			ok = ok || isEqual(value, one)
		}
	}
	if !asked {
		return isTruthy(value), nil
	}
	return ok, nil
}

// isTruthy reports whether a value is neither null, false, 0 nor empty.
func isTruthy(value json.RawMessage) bool {
	switch text := string(bytes.TrimSpace(value)); text {
	case "null", "false", `""`, "[]", "{}":
		return false
	default:
		n, ok := number(value)
		return !ok || n.Sign() != 0
	}
}

// isEqual reports whether two JSON values are equal: numbers by value, others by
// canonical form.
func isEqual(a, b json.RawMessage) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x.Cmp(y) == 0
	}
	return canonical(a) == canonical(b)
}

// canonical returns the JSON with sorted members; a text that is not JSON unchanged.
func canonical(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(raw)
	}
	out, err := jsonrpc.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// contains reports whether an array has an item equal to part, an object has a member
// named part, or the text of any other value contains that of part.
func contains(value, part json.RawMessage) bool {
	value = bytes.TrimSpace(value)
	if len(value) > 0 && value[0] == '[' {
		items, err := jsonrpc.Items(value)
		if err != nil {
			return false
		}
		for _, item := range items {
			if isEqual(item, part) {
				return true
			}
		}
		return false
	}
	if len(value) > 0 && value[0] == '{' {
		_, ok := member(value, executor.TextOf(part))
		return ok
	}
	return strings.Contains(executor.TextOf(value), executor.TextOf(part))
}

// maxDigits bounds the length of numbers that are compared.
const maxDigits = 400

// number returns the value of a JSON number. It returns false for other values, and for
// numbers of more than maxDigits.
func number(raw json.RawMessage) (*big.Float, bool) {
	text := string(bytes.TrimSpace(raw))
	if text == "" || len(text) > maxDigits || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return nil, false
	}
	n, _, err := big.ParseFloat(text, 10, 200, big.ToNearestEven)
	return n, err == nil
}

// compare returns -1, 0 or 1 if value is less than, equal to or greater than bound; 0
// if one of them is not a number. So a value that is not a number is neither above nor
// below.
func compare(value, bound json.RawMessage) int {
	a, ok := number(value)
	b, fine := number(bound)
	if !ok || !fine {
		return 0
	}
	return a.Cmp(b)
}
