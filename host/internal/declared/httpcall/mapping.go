package httpcall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jmespath/go-jmespath"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// mapping is a JMESPath expression that keeps numbers as written.
//
// JMESPath knows only floats, which represent few 64-bit integers exactly. Expressions
// that only move values get each number as its text. Expressions that compare, sort or
// calculate get a float for each number, in the same order, if necessary the next free
// one; in the result each such float is replaced by the number as written.
type mapping struct {
	path       *jmespath.JMESPath
	calculates bool
}

var calculationPattern = lazyregexp.New(`[<>=!]|\b(?:abs|avg|ceil|contains|floor|max|max_by|min|min_by|sort|sort_by|sum|to_number|type)\s*\(`)

// parseMapping parses an expression; nil for an empty one. It returns an error for a
// malformed one.
func parseMapping(expression string) (*mapping, error) {
	if expression == "" {
		return nil, nil
	}
	path, err := jmespath.Compile(expression)
	if err != nil {
		return nil, err
	}
	return &mapping{path, calculationPattern().MatchString(expression)}, nil
}

// apply returns the result of the expression for a JSON text. It returns an error if the
// text is not JSON or the expression cannot be applied to it.
func (m *mapping) apply(raw []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics when it compares values of some types
			out, err = nil, fmt.Errorf("%v", p)
		}
	}()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	var l numberTable
	if m.calculates {
		l = newNumberTable(value)
		value = mapLeaves(value, l.toFloat)
	}
	if value, err = m.path.Search(value); err != nil {
		return nil, err
	}
	if m.calculates {
		value = mapLeaves(value, l.toNumber)
	}
	return jsonrpc.Marshal(value)
}

// mapLeaves returns v with each value that is no list or object replaced by the result
// of by.
func mapLeaves(v any, by func(any) any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = mapLeaves(item, by)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = mapLeaves(member, by)
		}
		return out
	}
	return by(v)
}

// numberTable maps floats to the numbers that they represent.
type numberTable struct {
	floats  map[json.Number]float64
	numbers map[float64]json.Number
}

// newNumberTable returns a table of the numbers in a value.
func newNumberTable(value any) numberTable {
	l := numberTable{map[json.Number]float64{}, map[float64]json.Number{}}
	mapLeaves(value, func(v any) any {
		if n, ok := v.(json.Number); ok {
			if f, err := n.Float64(); err == nil {
				l.floats[n] = f
			}
		}
		return v
	})
	all := make([]json.Number, 0, len(l.floats))
	for n := range l.floats {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b json.Number) int {
		switch f, g := l.floats[a], l.floats[b]; {
		case f < g:
			return -1
		case f > g:
			return 1
		}
		return decimalOf(a).compare(decimalOf(b))
	})
	for i, n := range all {
		if i > 0 {
			last := l.floats[all[i-1]]
			switch {
			case l.floats[n] > last:
			case decimalOf(n).compare(decimalOf(all[i-1])) == 0: // the same number in another notation
				l.floats[n] = last
				continue
			default:
				l.floats[n] = math.Nextafter(last, math.Inf(1))
			}
		}
		l.numbers[l.floats[n]] = n
	}
	return l
}

// toFloat returns the float64 that represents a JSON number in the table; numbers that
// are not in the table or exceed a float64, and other values, unchanged. Different
// numbers have different floats, because newNumberTable moves a float that is taken.
func (l numberTable) toFloat(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	f, ok := l.floats[n]
	if !ok || math.IsInf(f, 0) { // no float is near it
		return n
	}
	return f
}

// toNumber returns the JSON number that a float64 represents in the table, with all its
// digits; other values unchanged.
func (l numberTable) toNumber(v any) any {
	if f, ok := v.(float64); ok {
		if n, ok := l.numbers[f]; ok {
			return n
		}
	}
	return v
}

// decimal is the number 0.DIGITS × 10^point; zero has no digits.
type decimal struct {
	negative bool
	digits   string
	point    int
}

// decimalOf returns a JSON number as sign, digits and position of the point.
func decimalOf(n json.Number) (d decimal) {
	text, negative := strings.CutPrefix(string(n), "-")
	text, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(text, ".")
	d.negative, d.point = negative, len(whole)
	if exponent != "" {
		e, _ := strconv.Atoi(exponent) //nolint:errcheck // an exponent out of range becomes the largest or smallest int
		d.point += max(-(1 << 30), min(e, 1<<30))
	}
	digits := whole + fraction
	d.digits = strings.TrimLeft(digits, "0")
	d.point -= len(digits) - len(d.digits)
	if d.digits = strings.TrimRight(d.digits, "0"); d.digits == "" {
		return decimal{}
	}
	return d
}

// compare returns a negative number, 0 or a positive number if d is less than, equal to
// or greater than e.
func (d decimal) compare(e decimal) int {
	switch {
	case d.sign() != e.sign():
		return d.sign() - e.sign()
	case d.negative:
		d, e = e, d
	}
	if d.point != e.point && d.digits != "" {
		return d.point - e.point
	}
	return strings.Compare(d.digits, e.digits)
}

// sign returns -1, 0 or 1.
func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}
