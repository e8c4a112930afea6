package manifest

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/httpcall"
)

// httpReader returns the function that reads the field http into c.
func (r *reader) httpReader(c *httpcall.Config) func(string, *dialect.Tree) {
	return func(path string, v *dialect.Tree) {
		var headers map[string]string
		var fromEnv map[string]secret.Text
		r.readFields(path, v, []field{
			{"url", nil, func(path string, v *dialect.Tree) {
				c.Shown = r.readText(path, v)
				c.URL = secret.Text(r.expandVariables(path, v, c.Shown))
			}},
			r.textField("method", &c.Method), r.textMapField("headers", &headers),
			{"headers_from_env", nil, func(path string, v *dialect.Tree) { fromEnv = r.readHeadersFromEnv(path, v) }},
			r.timeoutField(&c.Timeout), r.textsField("redact", &c.Redact),
			{"query", nil, func(path string, v *dialect.Tree) { r.readQuery(c, path, v) }},
			{"body", nil, func(_ string, v *dialect.Tree) {
				body := templateValue(v)
				c.Body = &body
			}},
			{"request", nil, r.mappingReader(c)},
			{"response", nil, func(path string, v *dialect.Tree) {
				r.readFields(path, v, []field{r.textField("body_mapping", &c.Response)})
			}},
			{"multimodal", nil, func(path string, v *dialect.Tree) { // images are always returned as such
				var kinds []string
				r.readFields(path, v, []field{r.boolField("enabled", func(bool) {}), r.textsField("accept_types", &kinds)})
			}},
			{"idempotency_key", nil, func(path string, v *dialect.Tree) {
				if on, ok := v.Bool(); ok && on {
					c.Key = "Idempotency-Key"
				} else if !ok {
					c.Key = r.readText(path, v)
				}
			}},
			{"allow_private", nil, func(path string, v *dialect.Tree) { r.readAllowPrivate(c, path, v) }},
		})
		for name, value := range headers {
			if c.Headers == nil {
				c.Headers = map[string]secret.Text{}
			}
			c.Headers[name] = secret.Text(value)
		}
		for name, value := range fromEnv {
			if c.Headers == nil {
				c.Headers = map[string]secret.Text{}
			}
			c.Headers[name] = value
		}
	}
}

// readHeadersFromEnv returns headers whose values are environment variables, from a
// list of HEADER=NAME, or only NAME, whose header is the name with dashes: X_API_KEY is
// sent as X-Api-Key. A variable that is not set is a problem.
func (r *reader) readHeadersFromEnv(path string, v *dialect.Tree) map[string]secret.Text {
	out := map[string]secret.Text{}
	for _, entry := range r.readTexts(path, v) {
		header, name, ok := strings.Cut(entry, "=")
		if !ok {
			name, header = entry, strings.ReplaceAll(entry, "_", "-")
		}
		if header = strings.TrimSpace(header); header == "" || strings.TrimSpace(name) == "" {
			r.addProblem(v, path, "want NAME or Header=NAME")
			continue
		}
		value, set := "", false
		if r.opt.Lookup != nil {
			value, set = r.opt.Lookup(strings.TrimSpace(name))
		}
		if !set || value == "" {
			r.addProblem(v, path, "variable %s is not set", dialect.ShownName(strings.TrimSpace(name)))
			continue
		}
		out[header] = secret.Text(value)
	}
	return out
}

// readQuery reads the query parameters into c: a list of argument names, or a map of
// parameters to templates.
func (r *reader) readQuery(c *httpcall.Config, path string, v *dialect.Tree) {
	if v.IsList() {
		c.Request.Query = append(c.Request.Query, r.readTexts(path, v)...)
		return
	}
	if !v.IsMap() {
		r.addProblem(v, path, "want a map of parameters, or a list of arguments, not %s", v.KindName())
		return
	}
	c.Query = []httpcall.Pair{}
	for _, b := range v.Members {
		at := joinPath(path, b.Name)
		c.Query = append(c.Query, httpcall.Pair{Name: b.Name, Value: r.expandVariables(at, b.Value, r.readText(at, b.Value))})
	}
}

// mappingReader returns the function that reads the field http.request into c.
func (r *reader) mappingReader(c *httpcall.Config) func(string, *dialect.Tree) {
	m := &c.Request
	return func(path string, v *dialect.Tree) {
		var query []string
		r.readFields(path, v, []field{
			r.textsField("query_params", &query), r.textMapField("header_params", &m.Headers), r.textField("body_mapping", &m.Body),
			r.textsField("exclude", &m.Exclude), r.textMapField("static_query", &m.StaticQuery), r.textMapField("static_headers", &m.StaticHeaders),
			{"static_body", nil, func(path string, v *dialect.Tree) {
				if !v.IsMap() {
					r.addProblem(v, path, "want a map, not %s", v.KindName())
					return
				}
				m.StaticBody = map[string]httpcall.Value{}
				for _, b := range v.Members {
					m.StaticBody[b.Name] = templateValue(b.Value)
				}
			}},
		})
		m.Query = append(m.Query, query...)
	}
}

// readAllowPrivate reads allow_private into c: a boolean, or a list of the addresses
// and networks that are permitted although they are not public.
func (r *reader) readAllowPrivate(c *httpcall.Config, path string, v *dialect.Tree) {
	if on, ok := v.Bool(); ok {
		c.Private = on
		return
	}
	for _, text := range r.readTexts(path, v) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, fault := netip.ParseAddr(text)
			if fault != nil {
				r.addProblem(v, path, "%s is neither an address nor a network like 10.0.0.0/8", dialect.ShownName(text))
				continue
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		c.Networks = append(c.Networks, prefix.Masked())
	}
}

// templateValue returns a JSON value whose strings can contain parameters, {name}.
func templateValue(v *dialect.Tree) httpcall.Value {
	switch {
	case v.IsMap():
		out := httpcall.Value{Kind: '{'}
		for _, b := range v.Members {
			out.Map = append(out.Map, httpcall.Member{Name: b.Name, Value: templateValue(b.Value)})
		}
		return out
	case v.IsList():
		out := httpcall.Value{Kind: '['}
		for _, item := range v.Items {
			out.List = append(out.List, templateValue(item))
		}
		return out
	}
	return httpcall.Value{JSON: slices.Clip(v.JSON())}
}
