// Package accesstoken verifies the OAuth access tokens with which users call
// the host over HTTP: JSON Web Tokens (RFC 9068) with the keys of their issuer,
// other tokens by introspection (RFC 7662).
//
// A token is accepted if the issuer made it for this host (audience), it has
// not expired, it is not bound to a key of the client (RFC 8705, RFC 9449: the
// host cannot check the proof), and it has the required scopes.
package accesstoken

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// Config describes the issuer and the tokens that are accepted.
type Config struct {
	Issuer    string         // identifier of the authorization server, a URL
	URL       string         // public base URL of this host, without a path
	Audiences []string       // accepted values of aud; none: URL, and URL/mcp with everything below
	Scopes    []string       // that each token must have
	UserClaim string         // the claim that names the user; "": sub
	Groups    string         // path of the claim with the user's groups, with dots; "": groups
	Profiles  []ProfileGrant // none: every user may use all tools

	// ClientID and ClientSecret are for introspection. Without an id, only JSON
	// Web Tokens are accepted.
	ClientID     string
	ClientSecret secret.Text

	// Report is called with the reason why the issuer cannot be asked or its answers cannot be used, and
	// with nil when tokens are verified again; see outageReports. Unless it is nil. It must not block.
	Report func(error)

	Client *http.Client     // nil: a client with bounds on time and redirects
	Now    func() time.Time // nil: time.Now
}

// ProfileGrant gives a profile to users with a scope or group.
type ProfileGrant struct {
	To      string // the scope or group
	Profile string // AllTools, or the name of a profile
}

// AllTools is a Profile without restriction.
const AllTools = "*"

// User is the owner of a verified token.
type User struct {
	Name     string
	Subject  string // issuer and subject, which never belong to another user; "": the token has no subject
	Expires  time.Time
	Profiles []string // in the order of the configuration; nil: all tools and profiles
}

// Error is a token that is not accepted. Code is invalid_token or
// insufficient_scope (RFC 6750, section 3.1).
type Error struct {
	Code   string
	Reason string
	Scopes []string // the required scopes, for insufficient_scope
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

// invalidToken returns an *Error with the code invalid_token and a formatted reason.
func invalidToken(format string, args ...any) error {
	return &Error{Code: "invalid_token", Reason: fmt.Sprintf(format, args...)}
}

// leeway is added to the end of a token, for clocks that differ.
const leeway = 30 * time.Second

// maxToken bounds a token in bytes.
const maxToken = 16 << 10

// algorithms are the accepted signatures. All are asymmetric: a token signed
// with a public key as if it were a secret is refused.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// Verifier verifies tokens. It is safe for concurrent use. It asks the issuer
// for its metadata and keys when the first token arrives.
type Verifier struct {
	cfg      Config
	client   *http.Client
	answered *introspectionCache

	mu      sync.Mutex
	issuer  *issuer
	failed  error // of the last attempt to read the metadata
	tried   time.Time
	reading *metadataRead // nil: no request is running

	outage outageReports
}

// New returns a verifier. It returns an error for a configuration that would
// accept no token, or tokens that are not for this host.
func New(c Config) (*Verifier, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Client == nil {
		c.Client = newClient()
	}
	return &Verifier{cfg: c, client: c.Client, answered: newIntrospectionCache(c.Now)}, nil
}

// Validate reports what is wrong with a configuration, beginning with the name
// of the setting.
func (c Config) Validate() error {
	issuer, err := url.Parse(c.Issuer)
	switch {
	case c.Issuer == "":
		return errors.New("issuer is required: the URL of the authorization server")
	case err != nil || issuer.Host == "" || issuer.User != nil || issuer.RawQuery != "" || issuer.Fragment != "":
		return errors.New("issuer must be a URL without query, fragment and user")
	case issuer.Scheme != "https" && !(issuer.Scheme == "http" && isLoopback(issuer.Hostname())):
		return errors.New("issuer must begin with https://; http:// is only for this machine")
	}
	here, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		return errors.New("url is required: the address at which clients reach this host, such as https://tools.example.com")
	case err != nil || here.Host == "" || here.User != nil || strings.Trim(here.Path, "/") != "" || here.RawQuery != "" || here.Fragment != "":
		return errors.New("url must be an address without a path, such as https://tools.example.com")
	case here.Scheme != "https" && !(here.Scheme == "http" && isLoopback(here.Hostname())):
		return errors.New("url must begin with https://, since tokens are sent to it; http:// is only for this machine")
	case c.ClientSecret != "" && c.ClientID == "":
		return errors.New("introspection needs a client_id")
	}
	return nil
}

// Verify returns the user of a token. Its error is an *Error if the token is
// not accepted; other errors mean that the issuer cannot be asked.
func (v *Verifier) Verify(ctx context.Context, token string) (*User, error) {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, invalidToken("the access token is malformed")
	}
	issuer, err := v.metadata(ctx)
	if err != nil {
		return nil, err
	}
	var claims *claims
	switch {
	case strings.Count(token, ".") == 2:
		claims, err = v.verifyJWT(ctx, issuer, token)
	case v.cfg.ClientID == "":
		err = invalidToken("the access token is not a JSON Web Token; the host accepts no others without introspection")
	default:
		claims, err = v.introspect(ctx, issuer, token)
	}
	if err != nil {
		if !errors.As(err, new(*Error)) && ctx.Err() == nil {
			v.report(err)
		}
		return nil, err
	}
	v.report(nil)
	return v.userOf(claims)
}

// userOf checks the claims of an authentic token and returns its user. It returns an *Error
// that says what is wrong with the token.
func (v *Verifier) userOf(c *claims) (*User, error) {
	if !slices.ContainsFunc(c.audience(), v.isAudience) {
		return nil, invalidToken("the access token is for another service: its audience is not this host")
	}
	if c.has("cnf") {
		return nil, invalidToken("the access token is bound to a key of the client; the host accepts bearer tokens only")
	}
	expires, ok := c.time("exp")
	switch {
	case !ok:
		return nil, invalidToken("the access token has no expiry")
	case v.cfg.Now().After(expires.Add(leeway)):
		return nil, invalidToken("the access token has expired")
	}
	if begins, ok := c.time("nbf"); ok && v.cfg.Now().Add(leeway).Before(begins) {
		return nil, invalidToken("the access token is not valid yet")
	}
	scopes := c.scopes()
	for _, scope := range v.cfg.Scopes {
		if !slices.Contains(scopes, scope) {
			return nil, &Error{"insufficient_scope", "the access token lacks the scope " + scope, v.cfg.Scopes}
		}
	}
	name, err := c.userName(cmp.Or(v.cfg.UserClaim, "sub"))
	if err != nil {
		return nil, err
	}
	u := &User{Name: name, Subject: v.subject(c), Expires: expires.Add(leeway)}
	if len(v.cfg.Profiles) == 0 {
		return u, nil
	}
	granted := append(scopes, c.texts(cmp.Or(v.cfg.Groups, "groups"))...)
	for _, grant := range v.cfg.Profiles {
		if slices.Contains(granted, grant.To) {
			if grant.Profile == AllTools {
				u.Profiles = nil
				return u, nil
			}
			if !slices.Contains(u.Profiles, grant.Profile) {
				u.Profiles = append(u.Profiles, grant.Profile)
			}
		}
	}
	if u.Profiles == nil {
		return nil, &Error{Code: "insufficient_scope", Reason: "none of the user's scopes and groups has a profile of this host", Scopes: v.cfg.Scopes}
	}
	return u, nil
}

// subject returns the issuer and the sub claim of a token, separated by a line feed; ""
// if the claim is missing or longer than maxName.
func (v *Verifier) subject(c *claims) string {
	sub := c.text("sub")
	if sub == "" || len(sub) > maxName {
		return ""
	}
	return v.cfg.Issuer + "\n" + sub
}

// isAudience reports whether a value of aud means this host: one of Audiences, or without
// these the host's URL, with or without /mcp.
func (v *Verifier) isAudience(aud string) bool {
	if len(v.cfg.Audiences) > 0 {
		return slices.Contains(v.cfg.Audiences, aud)
	}
	base := strings.TrimRight(v.cfg.URL, "/")
	rest, ok := strings.CutPrefix(strings.TrimRight(aud, "/"), base)
	return ok && (rest == "" || rest == "/mcp" || strings.HasPrefix(rest, "/mcp/"))
}

// claims are the members of a token, or of the answer of an introspection.
type claims struct {
	members map[string]json.RawMessage
}

// has reports whether there is a claim with a name.
func (c *claims) has(name string) bool { return c.members[name] != nil }

// text returns a claim that is a string; "" for a missing one or another type.
func (c *claims) text(name string) string {
	var text string
	json.Unmarshal(c.members[name], &text) //nolint:errcheck // another type is no text
	return text
}

// time returns a claim that is a NumericDate (seconds since 1970); false for a missing one
// or another type.
func (c *claims) time(name string) (time.Time, bool) {
	var seconds float64
	if json.Unmarshal(c.members[name], &seconds) != nil || !c.has(name) || seconds <= 0 || seconds > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

// texts returns a claim with one or several texts. path may lead into objects,
// such as realm_access.roles.
func (c *claims) texts(path string) (texts []string) {
	value := c.members[path] // a name with dots, such as https://example.com/groups
	if value == nil {
		members := c.members
		for rest, more := path, true; more; {
			var name string
			name, rest, more = strings.Cut(rest, ".")
			value, members = members[name], nil
			json.Unmarshal(value, &members) //nolint:errcheck // another type has no members
		}
	}
	if json.Unmarshal(value, &texts) == nil {
		return texts
	}
	var one string
	if json.Unmarshal(value, &one) == nil {
		return []string{one}
	}
	return nil
}

// audience returns the values of the claim aud, which is a string or a list.
func (c *claims) audience() []string { return c.texts("aud") }

// scopes returns the scopes: scope of RFC 9068, or scp of Microsoft and Okta.
func (c *claims) scopes() (scopes []string) {
	for _, name := range []string{"scope", "scp"} {
		for _, text := range c.texts(name) {
			scopes = append(scopes, strings.Fields(text)...)
		}
	}
	return scopes
}

// maxName bounds the name of a user in bytes.
const maxName = 256

// userName returns the claim that names the user. An address that the issuer has not
// verified names nobody. It returns an *Error if none exists.
func (c *claims) userName(claim string) (string, error) {
	name := c.text(claim)
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", invalidToken("the access token names no user: the claim %s is missing or malformed", claim)
	}
	if claim == "email" && c.has("email_verified") && string(c.members["email_verified"]) != "true" {
		return "", invalidToken("the issuer has not verified the user's email address")
	}
	return name, nil
}
