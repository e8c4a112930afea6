package httpcall

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// request is the HTTP request of a call, the same for all attempts.
type request struct {
	url    *url.URL
	header http.Header // declared headers, which are sent only to the declared origin
	body   []byte      // nil: none
}

// newRequest builds the HTTP request from the declaration and the arguments of a call. It
// returns an error if the arguments are no object, or if an argument is missing or cannot
// be put into the URL, a header or the body.
func (c *compiledConfig) newRequest(req *call.Request) (*request, error) {
	arguments, err := executor.Arguments(req)
	if err != nil {
		return nil, err
	}
	tool := req.Tool.Name
	r := &request{header: http.Header{}}
	if r.url, err = c.target.buildURL(tool, arguments, false); err != nil {
		return nil, err
	}
	if err := c.fillHeaders(tool, r.header, arguments); err != nil {
		return nil, err
	}
	if traceparent := traceparentOf(req.Params); traceparent != "" {
		r.header.Set("Traceparent", traceparent)
	}
	left := c.unused(arguments)
	query := c.fillQuery(r.url.Query(), arguments, left)
	if encoded := query.Encode(); len(query) > 0 && encoded != "" && (len(c.query) > 0 || len(c.Request.Query)+len(c.Request.StaticQuery) > 0 || c.putsUnusedInQuery(left)) {
		r.url.RawQuery = encoded
	}
	if c.hasBody() {
		if r.body, err = c.fillBody(tool, arguments, left); err != nil {
			return nil, err
		}
	}
	if r.body != nil && r.header.Get("Content-Type") == "" {
		r.header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// unused returns the arguments that no part of the request uses.
func (c *compiledConfig) unused(arguments map[string]json.RawMessage) map[string]json.RawMessage {
	left := maps.Clone(arguments)
	for name := range c.used {
		delete(left, name)
	}
	return left
}

// putsUnusedInQuery reports whether unused arguments are added to the query.
func (c *compiledConfig) putsUnusedInQuery(left map[string]json.RawMessage) bool {
	return !c.hasBody() && c.Query == nil && len(left) > 0
}

// fillQuery adds the mapped arguments and the static parameters to query and returns
// it. It also adds the arguments in left if putsUnusedInQuery says so.
func (c *compiledConfig) fillQuery(query url.Values, arguments, left map[string]json.RawMessage) url.Values {
	for _, p := range c.query {
		if p.value.missingArgument(arguments) == "" {
			query.Set(p.name, p.value.fill(arguments))
		}
	}
	for _, name := range c.Request.Query {
		if value, ok := arguments[name]; ok && string(value) != "null" {
			query.Set(name, executor.TextOf(value))
		}
	}
	if c.putsUnusedInQuery(left) {
		for name, value := range left {
			if string(value) != "null" && !query.Has(name) { // declared parameters are not replaced
				query.Set(name, executor.TextOf(value))
			}
		}
	}
	for name, value := range c.Request.StaticQuery {
		query.Set(name, value)
	}
	return query
}

// fillHeaders sets the mapped, static and configured headers. It returns
// MISSING_PARAMETER or INVALID_PARAMS if an argument is missing or cannot be in a
// header.
func (c *compiledConfig) fillHeaders(tool string, header http.Header, arguments map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(c.headers)) {
		t := c.headers[name]
		if t.missingArgument(arguments) != "" {
			return executor.Missing(tool, t.missingArgument(arguments), "the header "+name)
		}
		value := t.fill(arguments)
		if !isHeaderValue(value) {
			return toolerr.New(toolerr.InvalidParams, "%s: the arguments would put a control character into the header %s", tool, name)
		}
		header.Set(name, value)
	}
	for name, value := range c.Request.StaticHeaders {
		header.Set(name, value)
	}
	for name, value := range c.Headers {
		header.Set(name, value.Reveal())
	}
	return nil
}

// fillBody returns the body: the template filled in, or the arguments in left with the
// static members, mapped; nil if there are none. It adds the static members to left. It
// returns MISSING_PARAMETER if an argument of the template is missing, and
// INVALID_PARAMS if the mapping fails.
func (c *compiledConfig) fillBody(tool string, arguments, left map[string]json.RawMessage) ([]byte, error) {
	if c.Body != nil {
		body, there := c.Body.fill(nil, arguments)
		if !there { // then the body is one text
			return nil, executor.Missing(tool, parseTemplate(executor.TextOf(c.Body.JSON)).missingArgument(arguments), "the body")
		}
		return body, nil
	}
	for name, value := range c.Request.StaticBody {
		left[name], _ = value.fill(nil, nil)
	}
	if len(left) == 0 {
		return nil, nil
	}
	if c.request == nil {
		return jsonrpc.Marshal(left)
	}
	body, err := jsonrpc.Marshal(left)
	if err == nil {
		body, err = c.request.apply(body)
	}
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "%s: http.request.body_mapping cannot be applied: %w", tool, err)
	}
	return body, nil
}

var traceparentPattern = lazyregexp.New(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// traceparentOf returns the trace context of a call, "" if it is not traced.
func traceparentOf(params json.RawMessage) string {
	if !strings.Contains(string(params), "traceparent") {
		return ""
	}
	var p struct {
		Meta struct {
			Traceparent string `json:"traceparent"`
		} `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil || !traceparentPattern().MatchString(p.Meta.Traceparent) {
		return ""
	}
	return p.Meta.Traceparent
}
