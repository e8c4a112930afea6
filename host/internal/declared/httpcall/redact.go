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

// maxDepth bounds the nesting of an answer.
const maxDepth = 1000

// redact returns JSON with the values of the members in Config.Redact replaced, at any
// depth, in any case of letters, also in strings that contain JSON. It returns an error if
// body is not JSON, or nested too deep.
func (c *compiledConfig) redact(body []byte) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if err := jsonrpc.Valid(body); err != nil {
		return nil, err
	}
	if len(c.Redact) == 0 {
		return body, nil
	}
	r := newRedactor(body, c.Redact)
	if err := r.copyValue(0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return r.out, nil
}

// redactor copies JSON and replaces the values of members with certain names.
type redactor struct {
	in    *json.Decoder
	out   []byte
	names []string
	hid   bool
}

// newRedactor returns a redactor of a body for members with these names.
func newRedactor(body []byte, names []string) *redactor {
	r := &redactor{in: json.NewDecoder(bytes.NewReader(body)), names: names}
	r.in.UseNumber()
	return r
}

// redacts reports whether the values of members with a name are replaced; case does not
// matter.
func (r *redactor) redacts(name string) bool {
	return slices.ContainsFunc(r.names, func(hidden string) bool { return strings.EqualFold(hidden, name) })
}

// copyValue copies one value. It returns an error above maxDepth, or if the text is not
// JSON.
func (r *redactor) copyValue(depth int) error {
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
			if err := r.copyItem(token == '{', depth); err != nil {
				return err
			}
		}
		end, err := r.in.Token()
		if err != nil {
			return err
		}
		r.out = append(r.out, byte(end.(json.Delim))) //nolint:forcetypeassert,errcheck // More has reported it
	case string:
		r.out = jsonrpc.AppendString(r.out, r.redactString(token, depth))
	case json.Number:
		r.out = append(r.out, token...)
	case nil:
		r.out = append(r.out, "null"...)
	default:
		r.out = fmt.Append(r.out, token)
	}
	return nil
}

// redactString returns a text; if it is JSON, with the same members redacted. JSON that is
// nested too deep is replaced as a whole.
func (r *redactor) redactString(text string, depth int) string {
	inner := strings.TrimSpace(text)
	if inner == "" || inner[0] != '{' && inner[0] != '[' || jsonrpc.Valid([]byte(inner)) != nil {
		return text
	}
	in := newRedactor([]byte(inner), r.names)
	switch err := in.copyValue(depth + 1); {
	case err != nil: // it is nested too deep to be checked
		r.hid = true
		return Redacted
	case !in.hid:
		return text
	}
	r.hid = true
	return string(in.out)
}

// copyItem copies an item of an array, or, if named is set, a member of an object. The
// value of a member that must be redacted is replaced.
func (r *redactor) copyItem(named bool, depth int) error {
	if !named {
		return r.copyValue(depth + 1)
	}
	name, err := r.in.Token()
	if err != nil {
		return err
	}
	text, _ := name.(string) //nolint:errcheck // the decoder returns only strings here
	r.out = append(jsonrpc.AppendString(r.out, text), ':')
	if !r.redacts(text) {
		return r.copyValue(depth + 1)
	}
	start := len(r.out)
	if err := r.copyValue(depth + 1); err != nil {
		return err
	}
	r.out, r.hid = jsonrpc.AppendString(r.out[:start], Redacted), true
	return nil
}

// redactPattern returns an expression for members with such names in texts other than
// JSON: lines of JSON, events, forms, headers, XML, HTML, truncated JSON. The second
// group of a match is the value; it may contain too much, but not too little.
func redactPattern(names []string) *regexp.Regexp {
	if len(names) == 0 {
		return nil
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	name := `(?:` + strings.Join(quoted, "|") + `)`
	return regexp.MustCompile(`(?i)` +
		`((?:^|[^A-Za-z0-9_])` + name + `\\?["']?\s*[:=]\s*)` + // text before the value
		`("(?:[^"\\]|\\(?s:.))*(?:"|$)` +
		`|\\"(?:[^"\\]|\\\\\\"|\\[^"])*(?:\\?"|$)` + // JSON within a text
		`|'(?:[^'\\]|''|\\(?s:.))*(?:'|$)` +
		`|[{\[](?s:.*)` + // an object or list, whose end cannot be found
		`|[^\r\n&;,<>"'}\]]+)` +
		`|(<(?:[\w.-]+:)?` + name + `)(\s[^<>]*/>|[\s>](?s:.*?)(?:</(?:[\w.-]+:)?` + name + `\s*>|$))`)
}

// redactText replaces values of redacted members in a text that is no JSON. hid reports
// whether there was one.
func (c *compiledConfig) redactText(text string) (shown string, hid bool) {
	if c.redactedText == nil {
		return text, false
	}
	var out strings.Builder
	at := 0
	for _, m := range c.redactedText.FindAllStringSubmatchIndex(text, -1) {
		before := m[3]
		if before < 0 {
			before = m[7]
		}
		out.WriteString(text[at:before] + Redacted)
		at, hid = m[1], true
	}
	return out.String() + text[at:], hid
}
