// Package httpcall implements tools that are requests to a web service.
//
// # The request
//
// The URL has parameters, {city} or {{.city}}, in its path and query. Their values are escaped,
// and must not change the path's structure. The host name has no parameters. Arguments that the
// URL does not use go into the query (GET, HEAD, DELETE, OPTIONS) or a JSON body (POST, PUT,
// PATCH), unless query or body say otherwise:
//
//	query: {q: "{text}", units: metric}     a member with missing arguments is omitted
//	body: {name: "{first}", tags: "{tags}"} "{tags}" alone is the value itself, of any type
//	request:                                the form of PromptKit
//	  query_params: [page]                  header_params: {X-Space: "{{.space}}"}
//	  body_mapping: "{name: first}"         JMESPath over the remaining arguments
//	  exclude: [note]                       static_query, static_body, static_headers
//
// # Addresses
//
// Requests go only to public addresses, unless allow_private permits others: true permits
// loopback and private networks, a list permits addresses and networks. The check applies to
// the dialed address of each connection, so that a name cannot lead to another address later.
// A proxy of the environment is the user's choice and resolves names itself.
//
// At most five redirects are followed, and each is checked like the first address. A redirect
// to another origin loses everything that the declaration set (headers, body, Referer), also
// if it leads back from there. https is not redirected to http.
//
// # Failures
//
// A network failure, a timeout, 429 (with Retry-After) and 5xx are transport errors, which the
// retry stage repeats if the tool is read-only or idempotent. GET, HEAD and OPTIONS, and PUT
// and DELETE, are, unless the declaration says otherwise; such a request then uses a new
// connection, because net/http would repeat it when the server closes a reused one. With
// idempotency_key each call sends a new key, the same for all its attempts, and is repeated
// with every method. Every other status from 400 on is an error of the tool, with the service's
// text; 401 and 403 are AUTH_FAILED.
//
// # The result
//
// JSON becomes structured content, images and audio their own content types, other bytes a
// resource, and everything else text. The values of redact are removed at any depth, also from
// errors and with every content type: members of JSON, also of JSON inside texts; in other
// texts everything that looks like such a member, rather too much. Compressed or encoded bytes
// are not searched. Mappings keep numbers as written; numbers inside an expression, and the
// texts made from them in comparisons and sorts, are floats.
package httpcall

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/internal/httpguard"
)

// Config is the declaration of one tool. Variables in its texts are replaced already.
type Config struct {
	URL     secret.Text            // with parameters
	Shown   string                 // the URL as written, for messages
	Method  string                 // "": POST
	Headers map[string]secret.Text // with those from environment variables

	Query    []Pair         // nil: see the package comment
	Body     *Value         // nil: see the package comment
	Request  Mapping        //
	Response string         // JMESPath expression for the answer; "": unchanged
	Redact   []string       // names of members whose values are redacted, at any depth
	Key      string         // name of the header for the idempotency key; "": none
	Timeout  time.Duration  // of one attempt; 0: 30 s
	Private  bool           // loopback and private networks are permitted
	Networks []netip.Prefix // permitted networks of any kind
}

// Pair is a parameter of the query.
type Pair struct{ Name, Value string }

// Mapping is PromptKit's mapping of arguments to the parts of a request.
type Mapping struct {
	Query         []string
	Headers       map[string]string // templates
	Body          string            // JMESPath
	Exclude       []string
	StaticQuery   map[string]string
	StaticBody    map[string]Value // without parameters
	StaticHeaders map[string]string
}

const attemptTimeout = 30 * time.Second

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	_, err := c.compile()
	return err
}

// compiledConfig is a parsed Config.
type compiledConfig struct {
	Config
	target       target
	headers      map[string]template // of Request.Headers
	query        []pair
	used         map[string]bool // arguments that a part of the request uses
	request      *mapping        // nil: none
	response     *mapping        // nil: none
	redactedText *regexp.Regexp  // matches the values to redact in texts; nil: none
}

// pair is a name with a template for its value.
type pair struct {
	name  string
	value template
}

// compile checks the settings and prepares them for calls. Its error names the wrong
// setting.
func (c Config) compile() (*compiledConfig, error) {
	out := &compiledConfig{Config: c, headers: map[string]template{}, used: map[string]bool{}}
	if out.Method = strings.ToUpper(c.Method); c.Method == "" {
		out.Method = http.MethodPost
	}
	if !slices.Contains([]string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}, out.Method) {
		return nil, fmt.Errorf("http.method: %q is not one of GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE", c.Method)
	}
	if out.Timeout == 0 {
		out.Timeout = attemptTimeout
	}
	var err error
	if out.target, err = parseTarget(c.URL.Reveal()); err != nil {
		return nil, fmt.Errorf("http.url: %w", err)
	}
	for _, name := range out.target.parameterNames() {
		out.used[name] = true
	}
	if c.Body != nil && !out.hasBody() {
		return nil, fmt.Errorf("http.body: %s requests have no body", out.Method)
	}
	for _, p := range c.Query {
		t := parseTemplate(p.Value)
		out.query = append(out.query, pair{p.Name, t})
		out.markUsed(t.parameterNames()...)
	}
	if err := out.compileMapping(); err != nil {
		return nil, err
	}
	if out.response, err = parseMapping(c.Response); err != nil {
		return nil, fmt.Errorf("http.response.body_mapping: %w", err)
	}
	if slices.Contains(c.Redact, "") {
		return nil, errors.New("http.redact: a member's name is empty")
	}
	out.redactedText = redactPattern(c.Redact)
	return out, out.checkHeaders()
}

// markUsed records arguments that have a place in the request, so that they are not
// sent again in the body.
func (c *compiledConfig) markUsed(names ...string) {
	for _, name := range names {
		c.used[name] = true
	}
}

// compileMapping prepares the mapping of arguments to headers, query and body. It returns
// an error for an invalid mapping, or one next to a body.
func (c *compiledConfig) compileMapping() (err error) {
	m := c.Request
	for name, text := range m.Headers {
		c.headers[name] = parseTemplate(text)
		c.markUsed(c.headers[name].parameterNames()...)
	}
	c.markUsed(m.Query...)
	c.markUsed(m.Exclude...)
	if c.request, err = parseMapping(m.Body); err != nil {
		return fmt.Errorf("http.request.body_mapping: %w", err)
	}
	if c.Body != nil && (m.Body != "" || len(m.StaticBody) > 0) {
		return errors.New("http.body: request also has a body_mapping; leave one out")
	}
	return nil
}

// reservedHeaders lists headers that net/http writes or that frame the message.
func reservedHeaders() []string {
	return []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive", "Accept-Encoding"}
}

// checkHeaders returns an error for a header that is invalid, or that the host itself
// sets.
func (c *compiledConfig) checkHeaders() error {
	check := func(field, name, value string) error {
		switch {
		case !isHeaderName(name):
			return fmt.Errorf("%s: %q is not a valid header name", field, name)
		case slices.Contains(reservedHeaders(), textproto.CanonicalMIMEHeaderKey(name)):
			return fmt.Errorf("%s: %s is set by the host itself", field, name)
		case !isHeaderValue(value):
			return fmt.Errorf("%s: the value of %s has a control character", field, name)
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		if err := check("http.headers", name, c.Headers[name].Reveal()); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Request.Headers)) {
		if err := check("http.request.header_params", name, ""); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Request.StaticHeaders)) {
		if err := check("http.request.static_headers", name, c.Request.StaticHeaders[name]); err != nil {
			return err
		}
	}
	if c.Key != "" {
		return check("http.idempotency_key", c.Key, "")
	}
	return nil
}

// Uses returns the arguments that the declaration uses, sorted; nil if it is not valid.
func (c Config) Uses() []string {
	out, err := c.compile()
	if err != nil {
		return nil
	}
	if c.Body != nil {
		out.markUsed(c.Body.parameterNames()...)
	}
	return slices.Sorted(maps.Keys(out.used))
}

// Hints reports whether the tool is read-only and idempotent, by its method.
func (c Config) Hints() (readOnly, idempotent bool) {
	switch strings.ToUpper(c.Method) {
	case "GET", "HEAD", "OPTIONS":
		return true, true
	case "PUT", "DELETE":
		return false, true
	}
	return false, false
}

// hasBody reports whether requests have a body.
func (c *compiledConfig) hasBody() bool {
	return c.Method == http.MethodPost || c.Method == http.MethodPut || c.Method == http.MethodPatch
}

// New returns the handler of a declared HTTP tool. again returns the retry settings for
// calls that the retry stage would not repeat. agent is the User-Agent. It returns an error
// if c is not valid.
func New(c Config, shape executor.Shape, retryConfig func() retry.Config, agent string) (call.Handler, error) {
	compiled, err := c.compile()
	if err != nil {
		return nil, err
	}
	single := newTransport(c)
	single.DisableKeepAlives = true
	e := &client{compiledConfig: compiled, shape: shape, agent: agent, transport: httpguard.RefuseUpgrades(newTransport(c)), single: httpguard.RefuseUpgrades(single)}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		r, err := compiled.newRequest(req)
		if err != nil {
			return nil, err
		}
		once := func(ctx context.Context, req *call.Request) (*call.Result, error) { return e.sendOnce(ctx, req, r) }
		if c.Key == "" {
			return once(ctx, req)
		}
		r.header.Set(c.Key, rand.Text())
		// Retry here also calls that the stage would repeat: the stage would make a
		// new call with another idempotency key.
		tool := *req.Tool
		tool.Idempotent = true // because of the key
		keyed := *req
		keyed.Tool = &tool
		res, err := retry.New(retryConfig())(once)(ctx, &keyed)
		if err != nil && req.Tool.IsRepeatable() {
			return nil, retry.Permanent(err) // the retry stage must not repeat the call
		}
		return res, err
	}, nil
}

// isHeaderName reports whether a text is a valid header name (RFC 9110, section
// 5.6.2).
func isHeaderName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// isHeaderValue reports whether a text is a valid header value.
func isHeaderValue(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return isControl(r) && r != '\t' })
}

// shownURL returns the URL without parts that can be secret.
func (c *compiledConfig) shownURL() string {
	if c.Shown != "" {
		return secret.RedactURL(c.Shown)
	}
	return secret.RedactURL(c.URL.Reveal())
}

// origin returns the origin to which credentials belong.
func origin(u *url.URL) string { return u.Scheme + "://" + strings.ToLower(u.Host) }
