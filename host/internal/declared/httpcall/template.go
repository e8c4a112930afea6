package httpcall

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// parameterPattern matches {name} and {{.name}}.
var parameterPattern = lazyregexp.New(`\{\{\s*\.([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}|\{([A-Za-z_][A-Za-z0-9_-]*)\}`)

// template is a text with parameters.
type template []piece

// piece is a text or a parameter.
type piece struct{ text, name string }

// parseTemplate parses a text with parameters {NAME} or {{.NAME}}. Other braces are text.
func parseTemplate(text string) (t template) {
	at := 0
	for _, m := range parameterPattern().FindAllStringSubmatchIndex(text, -1) {
		if m[0] > at {
			t = append(t, piece{text: text[at:m[0]]})
		}
		from, to := m[2], m[3]
		if from < 0 {
			from, to = m[4], m[5]
		}
		t = append(t, piece{name: text[from:to]})
		at = m[1]
	}
	if at < len(text) {
		t = append(t, piece{text: text[at:]})
	}
	return t
}

// parameterNames returns the names of the parameters.
func (t template) parameterNames() (names []string) {
	for _, p := range t {
		if p.name != "" {
			names = append(names, p.name)
		}
	}
	return names
}

// missingArgument returns the first parameter without an argument; "": none.
func (t template) missingArgument(arguments map[string]json.RawMessage) string {
	for _, name := range t.parameterNames() {
		if _, ok := arguments[name]; !ok {
			return name
		}
	}
	return ""
}

// fill returns the text with the parameters replaced by arguments, all of which must be
// there; see missingArgument.
func (t template) fill(arguments map[string]json.RawMessage) string {
	var b strings.Builder
	for _, p := range t {
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(executor.TextOf(arguments[p.name]))
	}
	return b.String()
}

// target is a URL with parameters in its path and query.
type target struct {
	base        *url.URL // scheme, user and host
	path, query template
}

// parseTarget parses a URL with parameters in path and query. It returns an error
// unless the URL begins with http:// or https:// and a fixed host, and has no fragment.
func parseTarget(text string) (target, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if scheme = strings.ToLower(scheme); !ok || scheme != "http" && scheme != "https" {
		return target{}, errors.New("want an address that begins with http:// or https://")
	}
	rest, _, fragment := strings.Cut(rest, "#")
	if fragment {
		return target{}, errors.New("has a fragment (#), which is never sent")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	host := rest[:end]
	if strings.ContainsAny(host, "{}") {
		return target{}, errors.New("has a parameter before the path; only path and query can have parameters")
	}
	base, err := url.Parse(scheme + "://" + host)
	if err != nil || base.Hostname() == "" { // the error's text can contain credentials
		return target{}, errors.New("is malformed; want http://HOST/PATH")
	}
	path, query, _ := strings.Cut(rest[end:], "?")
	t := target{base: base, path: parseTemplate(path), query: parseTemplate(query)}
	if _, err := t.buildURL("", map[string]json.RawMessage{}, true); err != nil {
		return target{}, err
	}
	return t, nil
}

// parameterNames returns the names of the parameters.
func (t target) parameterNames() []string {
	return append(t.path.parameterNames(), t.query.parameterNames()...)
}

// buildURL returns the URL for arguments. With sample, every parameter is x. It returns
// MISSING_PARAMETER if an argument is missing, and INVALID_PARAMS if one would change the
// path.
func (t target) buildURL(tool string, arguments map[string]json.RawMessage, sample bool) (*url.URL, error) {
	value := func(name string) (string, error) {
		if sample {
			return "x", nil
		}
		raw, ok := arguments[name]
		if !ok || string(raw) == "null" {
			return "", executor.Missing(tool, name, "the URL")
		}
		return executor.TextOf(raw), nil
	}
	path, err := fillWith(t.path, func(name string) (string, error) {
		v, err := value(name)
		switch {
		case err != nil:
			return "", err
		case v == "" || v == "." || v == "..":
			return "", toolerr.New(toolerr.InvalidParams, "%s: argument %s is %q, which would change the path; give a non-empty value", tool, name, v)
		case strings.ContainsFunc(v, isControl):
			return "", toolerr.New(toolerr.InvalidParams, "%s: argument %s has a control character", tool, name)
		}
		return url.PathEscape(v), nil
	})
	if err != nil {
		return nil, err
	}
	query, err := fillWith(t.query, func(name string) (string, error) {
		v, err := value(name)
		return url.QueryEscape(v), err
	})
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" {
		if path != "" && strings.HasPrefix(path, "//") {
			u, err = &url.URL{Path: path}, nil
		} else {
			return nil, errors.New("has a malformed path")
		}
	}
	if !sample {
		for segment := range strings.SplitSeq(u.Path, "/") {
			if segment == ".." || segment == "." {
				return nil, toolerr.New(toolerr.InvalidParams, "%s: the arguments would change the path", tool)
			}
		}
	}
	full := *t.base
	full.Path, full.RawPath, full.RawQuery = u.Path, u.RawPath, query
	return &full, nil
}

// isControl reports whether a character is a control character of ASCII.
func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// fillWith returns the text with the values of its parameters. It returns the first
// error of value.
func fillWith(t template, value func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for _, p := range t {
		text := p.text
		if p.name != "" {
			var err error
			if text, err = value(p.name); err != nil {
				return "", err
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// Value is a part of a body: JSON whose strings can contain parameters.
type Value struct {
	JSON json.RawMessage // a scalar; otherwise List or Map is set
	List []Value
	Map  []Member // nil and List nil: JSON
	Kind byte     // '{', '[' or 0
}

// Member is a member of an object.
type Member struct {
	Name  string
	Value Value
}

// parameterNames returns the names of the parameters in the value and in its items.
func (v Value) parameterNames() (names []string) {
	for _, item := range v.List {
		names = append(names, item.parameterNames()...)
	}
	for _, m := range v.Map {
		names = append(names, m.Value.parameterNames()...)
	}
	if v.Kind == 0 && len(v.JSON) > 0 && v.JSON[0] == '"' {
		names = append(names, parseTemplate(executor.TextOf(v.JSON)).parameterNames()...)
	}
	return names
}

// fill appends the value. It leaves out members and items whose arguments are missing.
// there is false if the value itself was left out.
func (v Value) fill(dst []byte, arguments map[string]json.RawMessage) (out []byte, there bool) {
	switch v.Kind {
	case '{':
		dst = append(dst, '{')
		empty := len(dst)
		for _, m := range v.Map {
			start := len(dst)
			if start > empty {
				dst = append(dst, ',')
			}
			dst = append(jsonrpc.AppendString(dst, m.Name), ':')
			if dst, there = m.Value.fill(dst, arguments); !there {
				dst = dst[:start]
			}
		}
		return append(dst, '}'), true
	case '[':
		dst = append(dst, '[')
		empty := len(dst)
		for _, item := range v.List {
			start := len(dst)
			if start > empty {
				dst = append(dst, ',')
			}
			if dst, there = item.fill(dst, arguments); !there {
				dst = dst[:start]
			}
		}
		return append(dst, ']'), true
	}
	if len(v.JSON) == 0 || v.JSON[0] != '"' {
		return append(dst, v.JSON...), true
	}
	t := parseTemplate(executor.TextOf(v.JSON))
	if len(t.parameterNames()) == 0 {
		return append(dst, v.JSON...), true
	}
	if t.missingArgument(arguments) != "" {
		return dst, false
	}
	if len(t) == 1 {
		return append(dst, arguments[t[0].name]...), true
	}
	return jsonrpc.AppendString(dst, t.fill(arguments)), true
}
