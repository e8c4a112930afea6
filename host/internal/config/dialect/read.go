package dialect

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// reader turns the values of one server into a Server, noting problems.
type reader struct {
	doc    *Document
	server *Server
	fields []field // that a server may have
	strict bool    // toolroom's own file: nothing is guessed
	zed    bool    // Zed's
	field  string  // as written
	line   int
}

// problem adds a problem about the current field.
func (r *reader) problem(format string, args ...any) {
	r.doc.Problems = append(r.doc.Problems, Problem{
		File: r.doc.File, Line: r.line, Server: r.server.Name, Field: r.field, Text: fmt.Sprintf(format, args...),
	})
}

// warn adds a problem about the current field that does not reject the file.
func (r *reader) warn(format string, args ...any) {
	r.problem(format, args...)
	r.doc.Problems[len(r.doc.Problems)-1].Warning = true
}

// text returns a scalar as text, "" for null. Other nodes are a problem.
func (r *reader) text(n *node) string {
	if n.kind == nullNode {
		return ""
	}
	if !n.isScalar() {
		r.problem("want a string, not %s", n.kindWord())
		return ""
	}
	return n.text
}

// texts returns a list of scalars as texts, nil for null. For other nodes it reports a
// problem and returns nil.
func (r *reader) texts(n *node) []string {
	if n.kind == nullNode {
		return nil
	}
	if n.kind != listNode {
		r.problem("want a list of strings, not %s", n.kindWord())
		return nil
	}
	out := make([]string, 0, len(n.items))
	for _, item := range n.items {
		if !item.isScalar() {
			r.problem("want a list of strings; it contains %s", item.kindWord())
			return nil
		}
		out = append(out, item.text)
	}
	return out
}

// boolean returns a bool. ok is false for null, and for other nodes, which are a
// problem.
func (r *reader) boolean(n *node) (value, ok bool) {
	switch {
	case n.kind == boolNode && strings.EqualFold(n.text, "true"):
		return true, true
	case n.kind == boolNode && strings.EqualFold(n.text, "false"):
		return false, true
	case n.kind != nullNode:
		r.problem("want true or false, not %s", n.kindWord())
	}
	return false, false
}

// count returns a whole number above 0. For other nodes it reports a problem and returns 0.
func (r *reader) count(n *node) int {
	value, err := strconv.Atoi(n.text)
	if n.kind != numberNode || err != nil || value < 1 {
		r.problem("want a whole number above 0")
		return 0
	}
	return value
}

// duration returns a duration above 0; 0 for null. For other nodes it reports a problem and
// returns 0. unit is the unit of a number without one; 0 means that products disagree: the
// unit is then guessed, except in toolroom's own files, where its absence is a problem.
func (r *reader) duration(n *node, unit time.Duration) time.Duration {
	if n.kind == nullNode {
		return 0
	}
	number, err := strconv.ParseFloat(n.text, 64)
	if n.kind == textNode || err != nil {
		d, err := time.ParseDuration(n.text)
		if err != nil || d <= 0 || n.kind != textNode {
			r.problem("want a duration like 10s")
			return 0
		}
		return d
	}
	if unit == 0 {
		if r.strict {
			r.problem("a number without a unit; want a duration like 10s")
			return 0
		}
		// Most products count milliseconds, a few seconds. Nobody gives a
		// server less than a second, nor a quarter of an hour in seconds.
		unit = time.Millisecond
		if number < 1000 {
			unit = time.Second
		}
	}
	if !(number > 0) || number > float64(math.MaxInt64/unit) {
		r.problem("want a duration above 0")
		return 0
	}
	return time.Duration(number * float64(unit))
}

// vars reads variables or headers: a map, a list of {name, value}, or a list of texts with
// separator between name and value (NAME=value, "Name: value"). A name without a value is
// in unset. For other nodes it reports a problem.
func (r *reader) vars(n *node, separator string) (set map[string]secret.Text, unset []string) {
	set = map[string]secret.Text{}
	add := func(name string, v *node, line int) {
		r.line = line
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00\r\n"):
			r.problem("a name is empty or not one")
		case v.kind == nullNode:
			unset = append(unset, name)
		case !v.isScalar():
			r.problem("%s: want a string, not %s", shownName(name), v.kindWord())
		default:
			set[name] = secret.Text(v.text)
		}
	}
	switch n.kind {
	case nullNode:
	case mapNode:
		for _, p := range n.pairs {
			add(p.key, p.value, p.line)
		}
	case listNode:
		for _, item := range n.items {
			if item.kind == mapNode && item.get("name") != nil && item.get("value") != nil {
				add(item.get("name").text, item.get("value"), item.line)
				continue
			}
			name, value, ok := strings.Cut(item.text, separator)
			if item.kind != textNode || !ok {
				r.line = item.line
				r.problem("want a map, or a list of NAME%svalue", separator)
				continue
			}
			add(strings.TrimSpace(name), &node{kind: textNode, text: strings.TrimLeft(value, " ")}, item.line)
		}
	default:
		r.problem("want a map of strings, not %s", n.kindWord())
	}
	return set, unset
}

// textMap returns a map of texts that are no credentials; nil for null. For other nodes it
// reports a problem and returns nil.
func (r *reader) textMap(n *node) map[string]string {
	if n.kind != mapNode {
		if n.kind != nullNode {
			r.problem("want a map of strings, not %s", n.kindWord())
		}
		return nil
	}
	out := map[string]string{}
	for _, p := range n.pairs {
		r.line = p.line
		out[p.key] = r.text(p.value)
	}
	return out
}

// choice returns a text that is one of words; "" for null. Other texts are a problem, and
// return "".
func (r *reader) choice(n *node, words ...string) string {
	value := r.text(n)
	for _, word := range words {
		if value == word {
			return value
		}
	}
	if value != "" {
		r.problem("want one of %s%s", strings.Join(words, ", "), didYouMean(value, words))
	}
	return ""
}
