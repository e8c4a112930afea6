package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

var (
	identifierPattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	elementPattern    = lazyregexp.New(`^(?:([A-Za-z0-9_$@-]+)|\[(\d{1,6})\]|\["([^"\]]*)"\])`)
)

// ref is a reference ${…} in a text.
type ref struct {
	text       string   // as written
	root       string   // args or steps
	step       string   // name of the step, if root is steps
	part       string   // result, text or is_error, if root is steps
	path       []string // names of members and indexes of items
	fallback   string
	hasDefault bool
	start, end int // position in the text that contains it
}

// missingError is the error for a reference to a missing value.
type missingError struct{ ref string }

func (e *missingError) Error() string { return e.ref + " does not exist; ${…:-text} gives a default" }

// parseRefs returns the references in a text. It returns an error for a malformed or
// unclosed one.
func parseRefs(text string) (refs []ref, err error) {
	for at := 0; ; {
		i := strings.Index(text[at:], "${")
		if i < 0 {
			return refs, nil
		}
		start := at + i
		if start > 0 && text[start-1] == '$' { // $${
			at = start + 2
			continue
		}
		length := strings.IndexByte(text[start:], '}')
		if length < 0 {
			return nil, fmt.Errorf("unclosed ${; write $${ for the characters")
		}
		r, err := parseRef(text[start+2 : start+length])
		if err != nil {
			return nil, err
		}
		r.start, r.end = start, start+length+1
		refs = append(refs, r)
		at = r.end
	}
}

// parseRef parses the text between ${ and }: a path, and after :- a default. It returns
// an error for a path that refers neither to args nor to a step.
func parseRef(inside string) (ref, error) {
	r := ref{text: "${" + inside + "}"}
	inside, r.fallback, r.hasDefault = strings.Cut(inside, ":-")
	var parts []string
	rest := strings.TrimSpace(inside)
	for rest != "" {
		m := elementPattern().FindStringSubmatch(rest)
		if m == nil {
			return r, fmt.Errorf("%s is not a reference; use ${args.NAME} or ${steps.ID.result}", r.text)
		}
		parts = append(parts, m[1]+m[2]+m[3])
		rest = rest[len(m[0]):]
		if next, dot := strings.CutPrefix(rest, "."); dot && next != "" {
			rest = next
		} else if rest != "" && rest[0] != '[' {
			return r, fmt.Errorf("%s is not a reference; use ${args.NAME} or ${steps.ID.result}", r.text)
		}
	}
	switch {
	case len(parts) >= 1 && parts[0] == "args":
		r.root, r.path = "args", parts[1:]
	case len(parts) >= 3 && parts[0] == "steps":
		r.root, r.step, r.part, r.path = "steps", parts[1], parts[2], parts[3:]
		if !slices.Contains([]string{"result", "text", "details", "is_error"}, r.part) {
			return r, fmt.Errorf("%s: a step has result, text, details and is_error", r.text)
		}
	default:
		return r, fmt.Errorf("%s is not a reference; use ${args.NAME} or ${steps.ID.result}", r.text)
	}
	return r, nil
}

// eachText calls visit with each string of a value except names of members.
func eachText(raw json.RawMessage, visit func(string)) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return
	}
	switch raw[0] {
	case '"':
		visit(executor.TextOf(raw))
	case '{':
		members, err := jsonrpc.Members(raw)
		if err != nil {
			return
		}
		for _, m := range members {
			eachText(m.Value, visit)
		}
	case '[':
		items, err := jsonrpc.Items(raw)
		if err != nil {
			return
		}
		for _, item := range items {
			eachText(item, visit)
		}
	}
}

// checkRefs returns an error for the first malformed reference.
func checkRefs(raw json.RawMessage) (err error) {
	eachText(raw, func(text string) {
		if _, fault := parseRefs(text); err == nil {
			err = fault
		}
	})
	return err
}

// refsIn returns the references in all texts of a JSON value. It leaves out malformed
// ones, which checkRefs reports before.
func refsIn(raw json.RawMessage) (refs []ref) {
	eachText(raw, func(text string) {
		found, err := parseRefs(text)
		if err == nil {
			refs = append(refs, found...)
		}
	})
	return refs
}

// scope holds the values to which references can refer.
type scope struct {
	args  map[string]json.RawMessage
	steps map[string]outcome
}

// expand replaces the references in a value. It returns a *missingError for a reference
// without value and default, and an error for a value that gets too large.
func (s scope) expand(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '"':
		return s.expandText(executor.TextOf(raw))
	case '{':
		members, err := jsonrpc.Members(raw)
		if err != nil {
			return nil, err
		}
		out := []byte{'{'}
		for i, m := range members {
			value, err := s.expand(m.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(jsonrpc.AppendString(out, m.Name), ':'), value...)
		}
		return limitSize(append(out, '}'))
	case '[':
		items, err := jsonrpc.Items(raw)
		if err != nil {
			return nil, err
		}
		out := []byte{'['}
		for i, item := range items {
			value, err := s.expand(item)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, value...)
		}
		return limitSize(append(out, ']'))
	}
	return raw, nil
}

// limitSize refuses a value that became too large because it contains results many
// times.
func limitSize(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > executor.MaxResult {
		return nil, fmt.Errorf("it would be larger than %d MiB", executor.MaxResult>>20)
	}
	return raw, nil
}

// expandText replaces the references in a text. A text that is one reference becomes its
// value, of any type. It returns the errors of expand.
func (s scope) expandText(text string) (json.RawMessage, error) {
	refs, err := parseRefs(text)
	if err != nil {
		return nil, err
	}
	if len(refs) == 1 && refs[0].start == 0 && refs[0].end == len(text) {
		return s.resolve(refs[0])
	}
	var b strings.Builder
	at := 0
	for _, r := range refs {
		value, err := s.resolve(r)
		if err != nil {
			return nil, err
		}
		b.WriteString(strings.ReplaceAll(text[at:r.start], "$${", "${"))
		b.WriteString(executor.TextOf(value))
		at = r.end
	}
	b.WriteString(strings.ReplaceAll(text[at:], "$${", "${"))
	return limitSize(jsonrpc.AppendString(nil, b.String()))
}

// resolve returns the value of a reference, or its default if the value is missing or null.
// Without both it returns a *missingError.
func (s scope) resolve(r ref) (json.RawMessage, error) {
	value, ok := s.lookup(r)
	switch {
	case ok && !(r.hasDefault && string(value) == "null"):
		return value, nil
	case r.hasDefault:
		return jsonrpc.AppendString(nil, r.fallback), nil
	}
	return nil, &missingError{r.text}
}

// lookup returns the value of a reference, null for a step that has not run. It returns
// false if nothing is at its path.
func (s scope) lookup(r ref) (json.RawMessage, bool) {
	path := r.path
	var value json.RawMessage
	if r.root == "args" {
		if len(path) == 0 {
			all, err := jsonrpc.Marshal(s.args)
			return all, err == nil
		}
		var ok bool
		if value, ok = s.args[path[0]]; !ok {
			return nil, false
		}
		path = path[1:]
	} else {
		one, made := s.steps[r.step]
		switch {
		case !made:
			return json.RawMessage("null"), true
		case r.part == "text":
			value = jsonrpc.AppendString(nil, one.text())
		case r.part == "is_error":
			value = fmt.Append(nil, one.failed)
		case r.part == "details":
			if value = one.result.Details(); value == nil {
				value = json.RawMessage("null")
			}
		default:
			value = one.referenceValue()
		}
	}
	for _, name := range path {
		var ok bool
		if value, ok = member(value, name); !ok {
			return nil, false
		}
	}
	return value, true
}

// member returns a member of an object, or an item of a list by its index; false without
// one.
func member(value json.RawMessage, name string) (json.RawMessage, bool) {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) > 0 && value[0] == '{':
		members, err := jsonrpc.Members(value)
		if err != nil {
			return nil, false
		}
		for _, m := range members {
			if m.Name == name {
				return m.Value, true
			}
		}
	case len(value) > 0 && value[0] == '[':
		items, err := jsonrpc.Items(value)
		i, fault := strconv.Atoi(name)
		if err == nil && fault == nil && i >= 0 && i < len(items) {
			return items[i], true
		}
	}
	return nil, false
}
