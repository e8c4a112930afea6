package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
)

// The grants for programs that sign in as themselves, without a user.
const (
	ClientCredentials = "client_credentials" // RFC 6749, 4.4
	JWTBearer         = "jwt_bearer"         // RFC 7523, 2.1: by a JWT of another issuer, as of a workload
	IDJAG             = "id_jag"             // by an ID token of the enterprise's identity provider; see enterprise.go and identity.go
)

// hasAssertion reports whether the grant uses AssertionFile.
func (c Config) hasAssertion() bool { return c.Grant == JWTBearer || c.Grant == IDJAG }

// maxAssertion bounds the file with a JWT.
const maxAssertion = 64 << 10

// signsInAlone reports whether the host obtains tokens without a user: a grant is configured.
func (c Config) signsInAlone() bool { return c.Grant != "" }

// renewsAlone reports whether the host obtains new tokens without a refresh token and without a
// user: with a grant, and at an identity provider if the user is signed in there.
func (c Config) renewsAlone() bool {
	if !c.signsInAtIdentityProvider() {
		return c.signsInAlone()
	}
	a, _, err := c.identityConfig().Status()
	return err == nil && a.SignedIn
}

// obtainTokens requests new tokens for the configured client with its grant. It does not
// store them. It returns an error that wraps ErrSignIn if a user must sign in first.
func (c Config) obtainTokens(ctx context.Context) (tokens, error) {
	if err := c.Validate(); err != nil {
		return tokens{}, err
	}
	f := flow{Config: c, client: c.newHTTP()}
	if err := f.prepare(ctx); err != nil {
		return tokens{}, err
	}
	client, _ := f.configuredClient(f.server)
	form := url.Values{"grant_type": {c.Grant}}
	if c.hasAssertion() {
		jwt, err := c.userIDToken(ctx)
		if err == nil && c.Grant == IDJAG {
			jwt, err = f.identityAssertion(ctx, jwt)
		}
		if err != nil {
			return tokens{}, err
		}
		form = url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {jwt}}
	}
	f.addParameters(form)
	if len(f.scopes) > 0 {
		form.Set("scope", strings.Join(f.scopes, " "))
	}
	return f.requestTokens(ctx, f.client, f.tokensWithoutSecrets(client), form)
}

// readAssertion returns the JWT in AssertionFile, which it reads each time: platforms
// replace the file before the JWT expires. It returns an error if the file cannot be read
// or does not contain a JWT.
func (c Config) readAssertion() (string, error) {
	f, err := os.Open(c.AssertionFile)
	if err != nil {
		return "", fmt.Errorf("oauth.assertion_file: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(io.LimitReader(f, maxAssertion))
	if err != nil {
		return "", fmt.Errorf("oauth.assertion_file: %w", err)
	}
	jwt := strings.TrimSpace(string(text))
	if !isHeaderText(jwt) || strings.Count(jwt, ".") != 2 {
		return "", errors.New("oauth.assertion_file does not contain a JWT")
	}
	return jwt, nil
}
