package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// reservedParameters are the parameters of requests that AuthorizationParameters must not
// contain: the host sets them, or they replace what it sets.
var reservedParameters = []string{
	"response_type", "response_mode", "client_id", "client_secret", "client_assertion", "client_assertion_type", "redirect_uri", "state",
	"nonce", "scope", "resource", "code_challenge", "code_challenge_method", "request", "request_uri", "dpop_jkt", "grant_type", "assertion",
}

// maxParameters bounds AuthorizationParameters.
const maxParameters = 32

// ValidateRequest returns an error that names the wrong setting of authorization requests, and the
// setting.
func (c Config) ValidateRequest() (setting string, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.AuthorizationParameters)) {
		switch {
		case name == "" || !isHeaderText(name):
			return "authorization_parameters", fmt.Errorf("%.40q is not the name of a parameter", name)
		case slices.Contains(reservedParameters, strings.ToLower(name)):
			return "authorization_parameters", fmt.Errorf("%s cannot be set: the host sets it", name)
		}
	}
	if len(c.AuthorizationParameters) > maxParameters {
		return "authorization_parameters", fmt.Errorf("at most %d parameters can be set", maxParameters)
	}
	if _, err := c.redirectTarget(); err != nil {
		return "redirect_uri", err
	}
	return "", nil
}

// addParameters adds AuthorizationParameters to a request.
func (c Config) addParameters(to url.Values) {
	for name, value := range c.AuthorizationParameters {
		to.Set(name, value)
	}
}

// authorizationAddress returns the address at which the user signs in, for the browser. It
// returns an error if the server's address must not be opened in a browser.
func (f *flow) authorizationAddress(client registration, redirect, state, verifier string) (string, error) {
	to, err := f.checkAddress("authorization endpoint", f.server.AuthorizationEndpoint)
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(verifier))
	query := to.Query()
	if slices.Contains(f.scopes, "offline_access") {
		query.Set("prompt", "consent") // OpenID Connect Core, 11
	}
	f.addParameters(query)
	for name, value := range map[string]string{
		"response_type": "code", "client_id": client.ClientID, "redirect_uri": redirect, "state": state,
		"code_challenge": base64.RawURLEncoding.EncodeToString(hash[:]), "code_challenge_method": "S256",
	} {
		query.Set(name, value)
	}
	if f.resource.Resource != "" {
		query.Set("resource", f.resource.Resource)
	}
	if f.openID {
		query.Set("nonce", nonceFor(verifier))
	}
	if len(f.scopes) > 0 {
		query.Set("scope", strings.Join(f.scopes, " "))
	}
	to.RawQuery = query.Encode()
	return BrowserURL(to.String())
}
