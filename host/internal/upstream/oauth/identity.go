package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The grant IDJAG needs an ID token of the user. Without AssertionFile, the user signs in at the
// identity provider with OpenID Connect, and the ID token is the access token of a record of its
// own, which all servers with the same provider, client and account share. It is refreshed as
// other tokens are, and sent to the identity provider only.

// signsInAtIdentityProvider reports whether the user signs in at the identity provider of the
// enterprise, instead of at the authorization server of the MCP server.
func (c Config) signsInAtIdentityProvider() bool { return c.Grant == IDJAG && c.AssertionFile == "" }

// identityConfig returns the configuration of the sign-in at the identity provider.
func (c Config) identityConfig() Config {
	p := c.IdentityProvider
	return Config{
		Server: c.Server, URL: p.Issuer, Storage: c.Storage, Account: strings.TrimSpace("id_token " + p.ClientID + " " + c.Account), Version: c.Version,
		AllowPrivate: true, // the user has configured its address
		ClientID:     p.ClientID, ClientSecret: p.ClientSecret, RedirectPort: c.RedirectPort, RedirectURI: c.RedirectURI, openID: true,
	}
}

// prepareOpenID does the same as prepare for a sign-in at an identity provider.
func (f *flow) prepareOpenID(ctx context.Context) (err error) {
	if f.server, err = f.authorizationServer(ctx, f.client, resourceMetadata{AuthorizationServers: []string{f.URL}}); err != nil {
		return err
	}
	f.scopes = []string{"openid"}
	if slices.Contains(f.server.ScopesSupported, "offline_access") {
		f.scopes = append(f.scopes, "offline_access")
	}
	return nil
}

// loginAtIdentityProvider signs in to the server with the ID token of the user. If there is none
// that the identity provider accepts, the user first signs in there.
func (f *flow) loginAtIdentityProvider(ctx context.Context, prompt Prompt) (SignInStatus, error) {
	t, err := f.obtainTokens(ctx)
	var locked *keyringError
	if errors.Is(err, ErrSignIn) || errors.As(err, &locked) {
		if _, err := Login(ctx, f.identityConfig(), prompt); err != nil {
			return SignInStatus{}, fmt.Errorf("the identity provider %.200q: %w", f.IdentityProvider.Issuer, err)
		}
		t, err = f.obtainTokens(ctx)
	}
	if err != nil {
		return SignInStatus{}, err
	}
	return f.storeTokens(ctx, t)
}

// userIDToken returns the ID token of the user: that in AssertionFile, or the stored one,
// which it refreshes before it expires. It returns an error that wraps ErrSignIn without
// one.
func (c Config) userIDToken(ctx context.Context) (string, error) {
	if !c.signsInAtIdentityProvider() {
		return c.readAssertion()
	}
	s := NewSource(c.identityConfig())
	defer s.Close()
	token, err := s.Token(ctx)
	if err != nil && !errors.Is(err, ErrSignIn) {
		return "", err
	}
	if t := s.cached.Load(); err != nil || token == "" || t == nil || !time.Now().Before(t.Expires) {
		return "", c.signInRequired(fmt.Sprintf("server %s needs a sign-in at the identity provider %.200q", c.Server, c.IdentityProvider.Issuer))
	}
	return token, nil
}

// idClaims are the claims of an ID token that the host reads.
type idClaims struct {
	Issuer   string          `json:"iss"`
	Subject  string          `json:"sub"`
	Audience json.RawMessage `json:"aud"`
	Issued   float64         `json:"iat"`
	Expires  float64         `json:"exp"`
	Nonce    string          `json:"nonce"`
}

// parseIDToken returns the claims of an ID token. It does not check the signature.
func parseIDToken(idToken string) (claims idClaims, err error) {
	parts := strings.Split(idToken, ".")
	if !isHeaderText(idToken) || len(parts) != 3 {
		return claims, errors.New("the token endpoint sent no ID token")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return claims, errors.New("the ID token is malformed")
	}
	return claims, nil
}

// nonceFor returns the nonce of the authorization request with a verifier of PKCE. It binds the ID
// token to the request also at a provider that ignores PKCE.
func nonceFor(verifier string) string {
	sum := sha256.Sum256([]byte("nonce " + verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// checkNonce returns an error unless the ID token in t has the nonce for a verifier.
func checkNonce(t tokens, verifier string) error {
	claims, err := parseIDToken(t.Access)
	if err == nil && claims.Nonce != nonceFor(verifier) {
		err = errors.New("the ID token belongs to another sign-in")
	}
	return err
}

// withIDToken returns t with an ID token as access token. The token comes from the token endpoint
// directly, so that its signature need not be checked (OpenID Connect Core, 3.1.3.7). It returns an
// error if the token is of another issuer or for another client.
func withIDToken(t tokens, idToken string) (tokens, error) {
	claims, err := parseIDToken(idToken)
	if err != nil {
		return tokens{}, err
	}
	var audience []string
	if json.Unmarshal(claims.Audience, &audience) != nil {
		var one string
		json.Unmarshal(claims.Audience, &one) //nolint:errcheck // another type is no audience
		audience = []string{one}
	}
	switch {
	case claims.Issuer != t.Issuer:
		return tokens{}, fmt.Errorf("the ID token is of another issuer, %.200q", claims.Issuer)
	case !slices.Contains(audience, t.Client.ClientID):
		return tokens{}, errors.New("the ID token is for another client")
	case claims.Subject == "" || claims.Expires <= 0 || claims.Expires > 1<<40:
		return tokens{}, errors.New("the ID token has no subject or no expiry")
	}
	t.Access, t.Expires = idToken, time.Unix(int64(claims.Expires), 0)
	if life := claims.Expires - claims.Issued; claims.Issued > 0 && life > 0 && life < maxLifetime.Seconds() {
		t.Expires = t.Issued.Add(time.Duration(life * float64(time.Second))) // the provider's clock can differ
	}
	return t, nil
}
