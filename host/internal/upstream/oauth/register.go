package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Methods of client authentication at the token endpoint (RFC 7591, 2).
const (
	noAuth    = "none"
	basicAuth = "client_secret_basic"
	postAuth  = "client_secret_post"
	keyAuth   = "private_key_jwt" // OpenID Connect Core, 9
)

// registration is the host's identity at one authorization server.
type registration struct {
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret,omitempty"`
	AuthMethod   string    `json:"auth_method"`
	RedirectURI  string    `json:"redirect_uri,omitempty"` // of a dynamic registration
	Scopes       []string  `json:"scopes,omitempty"`       // that a dynamic registration asked for
	Expires      time.Time `json:"expires,omitzero"`       // of the secret
	Issuer       string    `json:"issuer,omitempty"`       // audience of assertions; for private_key_jwt
}

// configuredClient returns the identity that needs no registration: the configured client,
// or a client metadata document if the server supports them. It returns false if none exists.
func (c Config) configuredClient(m serverMetadata) (registration, bool) {
	switch {
	case c.PrivateKey != "":
		return registration{ClientID: c.ClientID, AuthMethod: keyAuth, Issuer: m.Issuer}, true
	case c.ClientID != "":
		return registration{
			ClientID: c.ClientID, ClientSecret: c.ClientSecret.Reveal(), AuthMethod: authMethod(c.ClientSecret != "", m.AuthMethods),
		}, true
	case c.ClientMetadataURL != "" && m.TakesMetadataDocument:
		return registration{ClientID: c.ClientMetadataURL, AuthMethod: noAuth}, true
	}
	return registration{}, false
}

// authMethod returns the method of authentication for a client with or without a secret, among
// those that a server supports. A server that
// lists none supports client_secret_basic (RFC 8414).
func authMethod(secret bool, supported []string) string {
	switch {
	case !secret:
		return noAuth
	case len(supported) == 0 || slices.Contains(supported, basicAuth):
		return basicAuth
	case slices.Contains(supported, postAuth):
		return postAuth
	}
	return basicAuth
}

// register registers the host dynamically (RFC 7591) with one redirect address, and returns
// the registration, which it does not store. device adds the grant of the device flow. It
// returns an error if the server registers no clients, or refuses.
func (c Config) register(ctx context.Context, client *http.Client, m serverMetadata, redirect string, scopes []string, device bool) (registration, error) {
	if m.RegistrationEndpoint == "" {
		return registration{}, fmt.Errorf("the authorization server %.200q registers no clients itself: register one there with the redirect address http://127.0.0.1/callback, and set oauth.client_id (and oauth.client_secret) for server %s", m.Issuer, c.Server)
	}
	method := noAuth
	if len(m.AuthMethods) > 0 && !slices.Contains(m.AuthMethods, noAuth) {
		method = authMethod(true, m.AuthMethods)
	}
	grants := []string{"authorization_code", "refresh_token"}
	if device {
		grants = append(grants, deviceGrant)
	}
	kind := "native"
	if u, err := url.Parse(redirect); err == nil && !isLoopback(u.Hostname()) {
		kind = "web"
	}
	ask := map[string]any{
		"client_name": "toolroom mcp-host", "application_type": kind, "redirect_uris": []string{redirect},
		"grant_types": grants, "response_types": []string{"code"}, "token_endpoint_auth_method": method,
	}
	if len(scopes) > 0 {
		ask["scope"] = strings.Join(scopes, " ")
	}
	var got struct {
		ClientID     string  `json:"client_id"`
		ClientSecret string  `json:"client_secret"`
		AuthMethod   string  `json:"token_endpoint_auth_method"`
		Expires      seconds `json:"client_secret_expires_at"`
	}
	if err := c.postJSON(ctx, client, m.RegistrationEndpoint, ask, &got); err != nil {
		return registration{}, fmt.Errorf("registering at the authorization server: %w", err)
	}
	if got.ClientID == "" {
		return registration{}, errors.New("registering at the authorization server: the answer has no client_id")
	}
	r := registration{ClientID: got.ClientID, ClientSecret: got.ClientSecret, AuthMethod: got.AuthMethod, RedirectURI: redirect, Scopes: scopes}
	if r.AuthMethod == "" || r.AuthMethod != noAuth && r.ClientSecret == "" {
		r.AuthMethod = authMethod(r.ClientSecret != "", m.AuthMethods)
	}
	if got.Expires > 0 {
		r.Expires = time.Unix(int64(min(got.Expires, maxUnixTime)), 0)
	}
	return r, nil
}

// isUsable reports whether a registration is not empty and its secret has not expired.
func (r registration) isUsable(now time.Time) bool {
	return r.ClientID != "" && (r.Expires.IsZero() || now.Before(r.Expires))
}
