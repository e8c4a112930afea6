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

func (c *checker) checkLength(s *schema, n int, of string, at *path) {
	size := bound{whole: true, integer: int64(n)}
	switch {
	case s.min.set && s.max.set && s.min.integer == s.max.integer && size.integer != s.min.integer:
		c.fault(at, "must have %s %s, got %d", s.min.text, of, n)
	case s.min.set && size.less(s.min):
		c.fault(at, "must have at least %s %s, got %d", s.min.text, of, n)
	case s.max.set && s.max.less(size):
		c.fault(at, "must have at most %s %s, got %d", s.max.text, of, n)
	}
}

func (c *checker) checkString(s *schema, n *node, at *path) *node {
	if n.hasLoneSurrogate {
		c.fault(at, "holds half of a surrogate pair (\\ud800–\\udfff), which is not a character")
		return n
	}
	switch s.kind {
	case kindBytes:
		if _, err := decodeBase64(n.str); err != nil {
			c.fault(at, "must be base64: %s", quotable(err.Error()))
		}
	case kindDuration:
		d, err := parseDuration(n)
		if err != nil {
			c.fault(at, `must be a duration like "30s" or "1m30s", got %s`, n.describe())
			return n
		}
		c.checkBounds(s, bound{whole: true, integer: int64(d)}, n, at)
	case kindText:
		v := reflect.New(s.typ)
		if u, ok := v.Interface().(encoding.TextUnmarshaler); ok && s.typ != nil {
			if err := u.UnmarshalText([]byte(n.str)); err != nil {
				c.fault(at, "is not valid: %s", quotable(err.Error()))
			}
		}
		c.checkLength(s, utf8.RuneCountInString(n.str), "characters", at)
	default:
		c.checkLength(s, utf8.RuneCountInString(n.str), "characters", at)
	}
	return n
}

func parseDuration(n *node) (time.Duration, error) {
	return time.ParseDuration(strings.TrimSpace(n.str))
}

func (c *checker) checkNumber(s *schema, n *node, at *path) {
	text := string(n.raw)
	if s.kind == kindInteger {
		value, whole, fits := wholeNumber(text)
		switch {
		case !whole:
			c.fault(at, "must be an integer, got %s", n.describe())
		case !fits || !fitsInt(s, value):
			c.fault(at, "is out of range: %s", quotable(text))
		default:
			c.checkBounds(s, value.bound(), n, at)
		}
		return
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || s.typ != nil && s.typ.Kind() == reflect.Float32 && math.Abs(f) > math.MaxFloat32 {
		c.fault(at, "is out of range: %s", quotable(text))
		return
	}
	c.checkBounds(s, bound{float: f}, n, at)
}

func (c *checker) checkBounds(s *schema, value bound, n *node, at *path) {
	switch {
	case s.min.set && s.max.set && (value.less(s.min) || s.max.less(value)):
		c.fault(at, "must be from %s to %s, got %s", s.min.text, s.max.text, quotable(string(n.raw)))
	case s.min.set && value.less(s.min):
		c.fault(at, "must be at least %s, got %s", s.min.text, quotable(string(n.raw)))
	case s.max.set && s.max.less(value):
		c.fault(at, "must be at most %s, got %s", s.max.text, quotable(string(n.raw)))
	}
}

func (c *checker) checkEnum(s *schema, n *node, at *path) *node {
	if s.allows(n) || slices.ContainsFunc(s.enum, func(e *node) bool { return sameValue(e, n) }) {
		return n
	}
	var values, names []string
	for _, e := range s.enum {
		values = append(values, string(e.raw))
		names = append(names, e.str)
	}
	hint := ""
	if near := nearest(n.str, names); n.kind == '"' && near != "" {
		hint = fmt.Sprintf(": did you mean %q?", near)
	}
	c.fault(at, "must be one of %s, got %s%s", strings.Join(values, ", "), quotable(string(n.raw)), hint)
	return n
}

// sameValue compares enum values in any spelling: 1.0 equals 1, and strings may
// have escapes.
func sameValue(a, b *node) bool {
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
func (c *checker) checkAny(n *node, at *path) {
	if n.hasLoneSurrogate {
		c.fault(at, "holds half of a surrogate pair (\\ud800–\\udfff), which is not a character")
	}
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		if seen[m.name] {
			c.fault(at.member(m.name), "is given twice")
		}
		seen[m.name] = true
		c.checkAny(m.value, at.member(m.name))
	}
	for i, item := range n.items {
		c.checkAny(item, at.at(i))
	}
}
