// Package oauth signs the host in to MCP servers that require OAuth: it finds
// the authorization server, registers a client, runs the authorization code or
// device flow, stores the tokens and refreshes them.
//
// A Source supplies the access token of one server to package upstream and does
// nothing until a request is sent. Login, Logout and Status belong to the
// commands.
//
// The official SDK's handler (go-sdk/auth) is not used: it keeps its tokens in
// memory and one process, registers again at each sign-in, has no device flow
// and no revocation, refuses metadata whose resource differs from the address
// in a final slash, and quotes bodies of answers, which can hold a client's
// secret, in its errors.
//
// Sources: the MCP specification, "Authorization", versions 2025-11-25 and
// 2026-07-28; RFC 6749, 7009, 7591, 7636, 8252, 8414, 8628, 8707, 9207, 9728.
package oauth

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/internal/netguard"
)

// Config describes one server and how to sign in to it.
type Config struct {
	Server       string // its name in the configuration, for messages
	URL          string // of the MCP server
	Storage             // of the tokens
	DPoP         bool   // bind tokens to a key, also if the metadata of the server does not ask for it
	Account      string // tells several sign-ins to one address apart; may be empty
	Subject      string // the user of serve that the sign-in belongs to; "": the host's own
	SignInLink   bool   // the host sends users a link; they do not run mcp-host login
	AllowPrivate bool   // whether names may lead to private addresses
	Version      string // of the host, for User-Agent

	ClientID          string // of a client that was registered by hand
	ClientSecret      secret.Text
	PrivateKey        secret.Text // in PEM; proves the client instead of a secret
	KeyAlgorithm      string      // of PrivateKey; "": by its kind
	Grant             string      // ClientCredentials, JWTBearer or IDJAG: without a browser; "": a user signs in
	AssertionFile     string      // with the JWT of JWTBearer or the ID token of IDJAG, read at each use; "" for IDJAG: the user signs in
	IdentityProvider  IdentityProvider
	ClientMetadataURL string   // of a client metadata document, which is the client id
	Scopes            []string // to ask for; none: those that the server names
	RedirectPort      int      // of the redirect address; 0: any free port
	RedirectURI       string   // the redirect address, on this machine; "": http://127.0.0.1/callback; without a port: with RedirectPort

	// AuthorizationParameters are added to the authorization request and the device authorization
	// request, and with a grant without a user to the token request. See ValidateRequest.
	AuthorizationParameters map[string]string
	AssumePKCE              bool // also if the metadata of the authorization server does not announce PKCE

	discardUnreadable bool // tokens whose key cannot be read count as none
	openID            bool // the sign-in is at an identity provider; see identity.go
}

// Validate returns an error that names the wrong setting.
func (c Config) Validate() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("server %s: url is malformed", c.Server)
	case c.State == "":
		return errors.New("no directory for tokens: set --state, MCP_STATE_DIR or HOME")
	case c.RedirectPort < 0 || c.RedirectPort > 65535:
		return fmt.Errorf("server %s: oauth.redirect_port %d is not a port", c.Server, c.RedirectPort)
	case c.Grant != "" && c.Grant != ClientCredentials && !c.hasAssertion():
		return fmt.Errorf("server %s: oauth.grant %q is not supported; use %s, %s or %s, or leave it out", c.Server, c.Grant, ClientCredentials, JWTBearer, IDJAG)
	case c.Grant == JWTBearer && c.AssertionFile == "":
		return fmt.Errorf("server %s: oauth.grant %s needs oauth.assertion_file", c.Server, JWTBearer)
	case c.AssertionFile != "" && !c.hasAssertion():
		return fmt.Errorf("server %s: oauth.assertion_file needs oauth.grant %s or %s", c.Server, JWTBearer, IDJAG)
	case c.hasAssertion() && c.ClientID == "":
		return fmt.Errorf("server %s: oauth.grant %s needs oauth.client_id", c.Server, c.Grant)
	case (c.Grant == IDJAG) != (c.IdentityProvider != IdentityProvider{}):
		return fmt.Errorf("server %s: oauth.grant %s and oauth.identity_provider need each other", c.Server, IDJAG)
	case c.Grant == IDJAG && (c.IdentityProvider.Issuer == "" || c.IdentityProvider.ClientID == ""):
		return fmt.Errorf("server %s: oauth.identity_provider needs issuer and client_id", c.Server)
	case c.Grant == ClientCredentials && (c.ClientID == "" || c.ClientSecret == "" && c.PrivateKey == ""):
		return fmt.Errorf("server %s: oauth.grant %s needs oauth.client_id, and oauth.client_secret or oauth.private_key", c.Server, ClientCredentials)
	case c.PrivateKey != "" && c.ClientID == "":
		return fmt.Errorf("server %s: oauth.private_key needs oauth.client_id", c.Server)
	case c.ClientSecret != "" && c.ClientID == "":
		return fmt.Errorf("server %s: oauth.client_secret needs oauth.client_id", c.Server)
	}
	if setting, err := c.ValidateRequest(); err != nil {
		return fmt.Errorf("server %s: oauth.%s: %w", c.Server, setting, err)
	}
	if c.ClientMetadataURL != "" {
		doc, err := url.Parse(c.ClientMetadataURL)
		if err != nil || doc.Scheme != "https" || strings.Trim(doc.Path, "/") == "" {
			return fmt.Errorf("server %s: oauth.client_metadata_url must be an https address with a path", c.Server)
		}
	}
	return nil
}

// isPrivate reports whether the server is on this machine or a private network,
// so that its authorization server may be there, too.
func (c Config) isPrivate() bool {
	u, err := url.Parse(c.URL)
	return err == nil && (c.AllowPrivate || isPrivateHost(u.Hostname()))
}

// isPrivateHost reports whether a host is an address that is not public, or a local name.
func isPrivateHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return netguard.Classify(ip.Unmap()).Reach != netguard.Public
	}
	return netguard.IsLocalName(host)
}

// isLoopback reports whether a host is localhost, a name below it, or a loopback address.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}

// checkAddress parses an address that a server named. It returns an error, in which what names the
// address, unless it is https; http is accepted on this machine, and on private networks if the
// MCP server is there.
func (c Config) checkAddress(what, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("the %s is not an address: %.200q", what, address)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("the %s has the scheme %.40q; only https is allowed", what, u.Scheme)
	case isPrivateHost(u.Hostname()) && !c.isPrivate():
		return nil, fmt.Errorf("the %s %.200q is a private address; set allow_private for server %s if that is intended", what, u.Host, c.Server)
	case u.Scheme == "http" && !isLoopback(u.Hostname()) && (!c.isPrivate() || !isPrivateHost(u.Hostname())):
		return nil, fmt.Errorf("the %s %.200q is not encrypted; only https is allowed", what, u.Scheme+"://"+u.Host)
	}
	return u, nil
}

// ErrSignIn is wrapped by errors that a sign-in resolves.
var ErrSignIn = errors.New("sign-in required")

// signInError is an error that a sign-in resolves. Its text says how to sign in.
type signInError struct {
	text   string
	scopes []string // that the sign-in must add; nil: none
}

// MissingScopes returns the scopes that a sign-in must add so that it resolves err; nil:
// none, or the server did not name them.
func MissingScopes(err error) []string {
	var needed *signInError
	if errors.As(err, &needed) {
		return needed.scopes
	}
	return nil
}

func (e *signInError) Error() string { return e.text }
func (e *signInError) Unwrap() error { return ErrSignIn }

// signInRequired returns an error that wraps ErrSignIn, with the reason and how to sign in.
func (c Config) signInRequired(why string) error { return c.signInRequiredWith(why, nil) }

// signInRequiredWith does the same as signInRequired for a sign-in that must add scopes;
// see MissingScopes. The error wraps ErrSignIn.
func (c Config) signInRequiredWith(why string, scopes []string) error {
	if c.SignInLink {
		return &signInError{why + ": call one of its tools to get the link", scopes}
	}
	return &signInError{fmt.Sprintf("%s: run mcp-host login %s", why, c.Server), scopes}
}

// SignInStatus is a sign-in as commands show it, without tokens.
type SignInStatus struct {
	Account   string    `json:"account,omitempty"`
	Issuer    string    `json:"issuer"`
	SignedIn  bool      `json:"signedIn"`
	Until     time.Time `json:"until,omitzero"`   // when the access token expires; zero: not said
	Refreshes bool      `json:"refreshes"`        // whether it is renewed without a sign-in
	Refused   time.Time `json:"refused,omitzero"` // when the server refused the token although it was just issued; zero: never
	Scopes    []string  `json:"scopes,omitempty"`
	Wanted    []string  `json:"wanted,omitempty"`  // scopes that the server asked for since
	Keyring   bool      `json:"keyring,omitempty"` // the key of the tokens is in the keyring of the system

	// Why the last renewal failed, if the provider did not answer; nil: it did, or it was not asked.
	Fault error `json:"-"`

	// After a sign-in: why the keyring is not used; nil: it is used, the configuration says so, or
	// the tokens of the sign-in before were in the file, too.
	NoKeyring error `json:"-"`
}

// String describes the sign-in in a line.
func (a SignInStatus) String() string {
	text := "signed in"
	switch {
	case !a.SignedIn:
		return "needs sign-in"
	case a.Fault != nil:
		text += ", not renewed: " + a.Fault.Error()
	case a.Refreshes && !a.Until.IsZero() && !time.Now().Before(a.Until):
		text += ", renewed at the next request"
	case a.Refreshes && !a.Until.IsZero():
		text += ", renewed at " + a.Until.Local().Format(time.DateTime)
	case !a.Until.IsZero():
		text += " until " + a.Until.Local().Format(time.DateTime)
	}
	if !a.Refused.IsZero() {
		text += ", the token was last refused by the server at " + a.Refused.Local().Format(time.DateTime)
	}
	if a.Account != "" {
		text += ", account " + a.Account
	}
	if len(a.Scopes) > 0 {
		text += ", scopes " + strings.Join(a.Scopes, " ")
	}
	if len(a.Wanted) > 0 {
		text += ", scopes missing: " + strings.Join(a.Wanted, " ")
	}
	return text
}
