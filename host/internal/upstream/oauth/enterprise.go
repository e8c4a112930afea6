package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// IdentityProvider is the identity provider of an enterprise that decides which servers
// its users may use (MCP extension "Enterprise-Managed Authorization").
type IdentityProvider struct {
	Issuer       string
	ClientID     string // of the host at the identity provider
	ClientSecret secret.Text
}

// Types of grants and tokens of a token exchange (RFC 8693).
const (
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	idTokenType   = "urn:ietf:params:oauth:token-type:id_token"
	idJAGType     = "urn:ietf:params:oauth:token-type:id-jag"
)

// identityAssertion exchanges the user's ID token at the identity provider for an identity
// assertion (ID-JAG) for the authorization server of the MCP server. It returns an error if
// the provider refuses, or sends something else.
func (f *flow) identityAssertion(ctx context.Context, idToken string) (string, error) {
	idp := f.Config
	idp.AllowPrivate = true // the user has configured its address
	client := idp.newHTTP()
	endpoint, err := idp.identityEndpoint(ctx, client)
	if err != nil {
		return "", fmt.Errorf("the identity provider: %w", err)
	}
	form := url.Values{
		"grant_type": {exchangeGrant}, "subject_token": {idToken}, "subject_token_type": {idTokenType}, "requested_token_type": {idJAGType},
		"audience": {f.server.Issuer}, "resource": {f.resource.Resource},
	}
	if len(f.scopes) > 0 {
		form.Set("scope", strings.Join(f.scopes, " "))
	}
	as := registration{ClientID: f.IdentityProvider.ClientID, ClientSecret: f.IdentityProvider.ClientSecret.Reveal(), AuthMethod: authMethod(f.IdentityProvider.ClientSecret != "", nil)}
	var got struct {
		Assertion string `json:"access_token"`
		Issued    string `json:"issued_token_type"`
	}
	if err := idp.postForm(ctx, client, endpoint, as, form, &got); err != nil {
		var status *statusError
		if f.signsInAtIdentityProvider() && errors.As(err, &status) && status.code == "invalid_grant" {
			return "", f.signInRequired(fmt.Sprintf("the identity provider does not accept the sign-in of the user any more (%v)", err))
		}
		return "", fmt.Errorf("the identity provider: %w", err)
	}
	switch {
	case got.Issued != idJAGType:
		return "", fmt.Errorf("the identity provider sent a token of the type %.80q, not an identity assertion", got.Issued)
	case got.Assertion == idToken || !isHeaderText(got.Assertion) || strings.Count(got.Assertion, ".") != 2:
		return "", errors.New("the identity provider sent no identity assertion")
	}
	return got.Assertion, nil
}

// identityEndpoint returns the token endpoint in the metadata of the identity provider. It
// returns an error if the provider has no metadata, or they name another issuer or an
// address that must not be used.
func (c Config) identityEndpoint(ctx context.Context, client *http.Client) (string, error) {
	m, err := c.serverMetadata(ctx, client, c.IdentityProvider.Issuer)
	if err != nil {
		return "", err
	}
	_, err = c.checkAddress("token endpoint", m.TokenEndpoint)
	return m.TokenEndpoint, err
}
