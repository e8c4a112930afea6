package mcpkit

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// checkLength checks a length n against the bounds of s; of names what is
// counted.
func (c *checker) checkLength(s *schema, n int, of string, at *argPath) {
	size := bound{isExact: true, integer: int64(n)}
	switch {
	case s.min.isSet && s.max.isSet && s.min.integer == s.max.integer && size.integer != s.min.integer:
		c.faultf(at, "must have %s, got %d", boundedCount(s.min, of), n)
	case s.min.isSet && size.less(s.min):
		c.faultf(at, "must have at least %s, got %d", boundedCount(s.min, of), n)
	case s.max.isSet && s.max.less(size):
		c.faultf(at, "must have at most %s, got %d", boundedCount(s.max, of), n)
	}
}

// boundedCount formats a bound of a length: "1 character", "3 items". what is
// in the plural.
func boundedCount(b bound, what string) string {
	if b.isExact && b.integer == 1 {
		what = strings.TrimSuffix(what, "s")
	}
	return b.text + " " + what
}

// checkString checks a string of any string kind: bounds, base64, duration,
// UnmarshalText.
func (c *checker) checkString(s *schema, n *jsonNode, at *argPath) *jsonNode {
	if n.hasLoneSurrogate {
		c.faultf(at, "holds half of a surrogate pair (\\ud800–\\udfff), which is not a character")
		return n
	}
	switch s.kind {
	case kindBytes:
		if _, err := decodeBase64(n.str); err != nil {
			c.faultf(at, "must be base64: %s", printable(err.Error()))
		}
	case kindDuration:
		d, err := parseDuration(n)
		if err != nil {
			c.faultf(at, `must be a duration like "30s" or "1m30s", got %s`, n.describe())
			return n
		}
		c.checkBounds(s, bound{isExact: true, integer: int64(d)}, n, at)
	case kindText:
		v := reflect.New(s.goType)
		if u, ok := v.Interface().(encoding.TextUnmarshaler); ok && s.goType != nil {
			if err := u.UnmarshalText([]byte(n.str)); err != nil {
				c.faultf(at, "is not valid: %s", printable(err.Error()))
			}
		}
		c.checkLength(s, utf8.RuneCountInString(n.str), "characters", at)
	default:
		c.checkLength(s, utf8.RuneCountInString(n.str), "characters", at)
	}
	return n
}

// parseDuration parses the text of a string node.
func parseDuration(n *jsonNode) (time.Duration, error) {
	return time.ParseDuration(strings.TrimSpace(n.str))
}

// checkNumber checks that a number fits the Go type and the bounds.
func (c *checker) checkNumber(s *schema, n *jsonNode, at *argPath) {
	text := string(n.raw)
	if s.kind == kindInteger {
		value, whole, fits := parseWholeNumber(text)
		switch {
		case !whole:
			c.faultf(at, "must be an integer, got %s", n.describe())
		case !fits || !fitsIntType(s, value):
			c.faultf(at, "is out of range: %s", printable(text))
		default:
			c.checkBounds(s, value.asBound(), n, at)
		}
		return
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || s.goType != nil && s.goType.Kind() == reflect.Float32 && math.Abs(f) > math.MaxFloat32 {
		c.faultf(at, "is out of range: %s", printable(text))
		return
	}
	c.checkBounds(s, bound{float: f}, n, at)
}

// checkBounds checks value, which is the value of the node n, against the bounds of s. It
// adds a fault to c if it is out of bounds; at is the place of n, for the message.
func (c *checker) checkBounds(s *schema, value bound, n *jsonNode, at *argPath) {
	switch {
	case s.min.isSet && s.max.isSet && (value.less(s.min) || s.max.less(value)):
		c.faultf(at, "must be from %s to %s, got %s", s.min.text, s.max.text, printable(string(n.raw)))
	case s.min.isSet && value.less(s.min):
		c.faultf(at, "must be at least %s, got %s", s.min.text, printable(string(n.raw)))
	case s.max.isSet && s.max.less(value):
		c.faultf(at, "must be at most %s, got %s", s.max.text, printable(string(n.raw)))
	}
}

// checkEnum adds a fault unless n equals one of the enum's values, and returns n.
func (c *checker) checkEnum(s *schema, n *jsonNode, at *argPath) *jsonNode {
	if s.isEnumValue(n) || slices.ContainsFunc(s.enum, func(e *jsonNode) bool { return sameScalar(e, n) }) {
		return n
	}
	var values, names []string
	for _, e := range s.enum {
		values = append(values, string(e.raw))
		names = append(names, e.str)
	}
	hint := ""
	if near := nearestName(n.str, names); n.kind == '"' && near != "" {
		hint = fmt.Sprintf(": did you mean %q?", near)
	}
	c.faultf(at, "must be one of %s, got %s%s", strings.Join(values, ", "), printable(string(n.raw)), hint)
	return n
}

// sameScalar reports whether two enum values are equal in any spelling: 1.0
// equals 1, and strings may have escapes.
func sameScalar(a, b *jsonNode) bool {
	if a.kind != b.kind {
		return false
	}
	if a.kind == '"' {
		return a.str == b.str
	}
	x, errX := strconv.ParseFloat(string(a.raw), 64)
	y, errY := strconv.ParseFloat(string(b.raw), 64)
	return a.kind == '0' && errX == nil && errY == nil && x == y
}

// checkAny checks a value of any type for repeated members and lone surrogates.
func (c *checker) checkAny(n *jsonNode, at *argPath) {
	if n.hasLoneSurrogate {
		c.faultf(at, "holds half of a surrogate pair (\\ud800–\\udfff), which is not a character")
	}
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		if seen[m.name] {
			c.faultf(at.member(m.name), "is given twice")
		}
		seen[m.name] = true
		c.checkAny(m.value, at.member(m.name))
	}
	for i, item := range n.items {
		c.checkAny(item, at.item(i))
	}
}
