package httpcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Redacted replaces a redacted value.
const Redacted = "[REDACTED]"

// maxDepth bounds how deep an answer is nested.
const maxDepth = 1000

// redact returns JSON with the values of the members that are not shown
// replaced, at any depth, whatever their case; also in texts that are JSON
// themselves.
func (c *compiled) redact(body []byte) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if err := jsonrpc.Valid(body); err != nil {
		return nil, err
	}
	if len(c.Redact) == 0 {
		return body, nil
	}
	r := newRedactor(body, c.Redact)
	if err := r.value(0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return r.out, nil
}

type redactor struct {
	in    *json.Decoder
	out   []byte
	names []string
	hid   bool
}

func newRedactor(body []byte, names []string) *redactor {
	r := &redactor{in: json.NewDecoder(bytes.NewReader(body)), names: names}
	r.in.UseNumber()
	return r
}

func (r *redactor) hides(name string) bool {
	return slices.ContainsFunc(r.names, func(hidden string) bool { return strings.EqualFold(hidden, name) })
}

func (r *redactor) value(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	token, err := r.in.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		r.out = append(r.out, byte(token))
		for first := true; r.in.More(); first = false {
			if !first {
				r.out = append(r.out, ',')
			}
			if err := r.item(token == '{', depth); err != nil {
				return err
			}
		}
		end, err := r.in.Token()
		if err != nil {
			return err
		}
		r.out = append(r.out, byte(end.(json.Delim))) //nolint:forcetypeassert,errcheck // More said so
	case string:
		r.out = jsonrpc.AppendString(r.out, r.text(token, depth))
	case json.Number:
		r.out = append(r.out, token...)
	case nil:
		r.out = append(r.out, "null"...)
	default:
		r.out = fmt.Append(r.out, token)
	}
	return nil
}

// text is a text, redacted if it is JSON.
func (r *redactor) text(text string, depth int) string {
	inner := strings.TrimSpace(text)
	if inner == "" || inner[0] != '{' && inner[0] != '[' || jsonrpc.Valid([]byte(inner)) != nil {
		return text
	}
	in := newRedactor([]byte(inner), r.names)
	switch err := in.value(depth + 1); {
	case err != nil: // it is nested too deep to be looked at
		r.hid = true
		return Redacted
	case !in.hid:
		return text
	}
	r.hid = true
	return string(in.out)
}

func (r *redactor) item(named bool, depth int) error {
	if !named {
		return r.value(depth + 1)
	}
	name, err := r.in.Token()
	if err != nil {
		return err
	}
	text, _ := name.(string) //nolint:errcheck // the decoder gives nothing else here
	r.out = append(jsonrpc.AppendString(r.out, text), ':')
	if !r.hides(text) {
		return r.value(depth + 1)
	}
	start := len(r.out)
	if err := r.value(depth + 1); err != nil {
		return err
	}
	r.out, r.hid = jsonrpc.AppendString(r.out[:start], Redacted), true
	return nil
}

// hiding returns an expression for members with such names in texts other than JSON:
// lines of JSON, events, forms, headers, XML, HTML, truncated JSON. The second group
// of a match is the value to hide; it may contain too much, but not too little.
func hiding(names []string) *regexp.Regexp {
	if len(names) == 0 {
		return nil
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	name := `(?:` + strings.Join(quoted, "|") + `)`
	return regexp.MustCompile(`(?i)` +
		`((?:^|[^A-Za-z0-9_])` + name + `\\?["']?\s*[:=]\s*)` + // what is before the value
		`("(?:[^"\\]|\\(?s:.))*(?:"|$)` +
		`|\\"(?:[^"\\]|\\\\\\"|\\[^"])*(?:\\?"|$)` + // JSON within a text
		`|'(?:[^'\\]|''|\\(?s:.))*(?:'|$)` +
		`|[{\[](?s:.*)` + // whose end is not known
		`|[^\r\n&;,<>"'}\]]+)` +
		`|(<(?:[\w.-]+:)?` + name + `)(\s[^<>]*/>|[\s>](?s:.*?)(?:</(?:[\w.-]+:)?` + name + `\s*>|$))`)
}

// hide replaces what is not shown in a text that is no JSON, and reports
// whether there was something.
func (c *compiled) hide(text string) (shown string, hid bool) {
	if c.hidden == nil {
		return text, false
	}
	var out strings.Builder
	at := 0
	for _, m := range c.hidden.FindAllStringSubmatchIndex(text, -1) {
		before := m[3]
		if before < 0 {
			before = m[7]
		}
		out.WriteString(text[at:before] + Redacted)
		at, hid = m[1], true
	}
	return out.String() + text[at:], hid
}
