package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// tokenResponse is the answer of a token endpoint (RFC 6749, 5.1).
type tokenResponse struct {
	Access  string     `json:"access_token"`
	Type    string     `json:"token_type"`
	Refresh string     `json:"refresh_token"`
	Expires seconds    `json:"expires_in"`
	Scope   *scopeList `json:"scope"`
	ID      string     `json:"id_token"`
}

// maxLifetime bounds the lifetime of tokens and codes that a server names.
const maxLifetime = 10 * 365 * 24 * time.Hour

// requestTokens requests tokens at the token endpoint of t, and returns t with them. If the
// answer names no scopes, they are those of t. It does not store the tokens. It returns an
// error if the endpoint refuses, or sends tokens that cannot be used.
func (c Config) requestTokens(ctx context.Context, client *http.Client, t tokens, form url.Values) (tokens, error) {
	if t.Resource != "" {
		form.Set("resource", t.Resource)
	}
	begin := time.Now()
	var got tokenResponse
	if err := c.postWithKey(ctx, client, t, form, &got); err != nil {
		return tokens{}, err
	}
	t.Scheme = ""
	switch {
	case !isHeaderText(got.Access):
		return tokens{}, errors.New("the token endpoint sent no access token that a header can carry")
	case t.Key != "" && strings.EqualFold(got.Type, dpopScheme):
		t.Scheme = dpopScheme
	case got.Type != "" && !strings.EqualFold(got.Type, "Bearer"):
		return tokens{}, fmt.Errorf("the token endpoint sent a token of the type %.40q; only Bearer is supported", got.Type)
	}
	t.Access, t.Issued, t.Expires = got.Access, begin, time.Time{}
	if got.Refresh != "" {
		t.Refresh = got.Refresh
	}
	if got.Expires > 0 {
		t.Expires = begin.Add(min(got.Expires, seconds(maxLifetime.Seconds())).duration())
	}
	if got.Scope != nil {
		t.Scopes = got.Scope.splitAtCommas(t.Scopes)
	}
	if c.openID {
		return withIDToken(t, got.ID)
	}
	return t, nil
}

// postWithKey posts a form to the token endpoint, with a proof of possession if the
// tokens are bound to a key, and once more with the nonce that the server asks for
// (RFC 9449, 8).
func (c Config) postWithKey(ctx context.Context, client *http.Client, t tokens, form url.Values, result any) error {
	if t.Key == "" {
		return c.postForm(ctx, client, t.Endpoint, t.Client, form, result)
	}
	to, err := url.Parse(t.Endpoint)
	if err != nil {
		return err
	}
	for nonce := ""; ; {
		text, err := proofOfPossession(t.Key, http.MethodPost, to, "", nonce)
		if err != nil {
			return err
		}
		err = c.postProved(ctx, client, t.Endpoint, t.Client, form, text, result)
		var status *statusError
		if !errors.As(err, &status) || status.code != "use_dpop_nonce" || status.nonce == "" || nonce != "" {
			return err
		}
		nonce = status.nonce
	}
}

// isHeaderText reports whether a token is visible ASCII.
func isHeaderText(token string) bool {
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return false
		}
	}
	return token != ""
}

// refresh exchanges the refresh token for new tokens. The old refresh token is kept if the
// server sends no new one. For an error, isRefused reports whether the server refused the
// credentials.
func (c Config) refresh(ctx context.Context, client *http.Client, t tokens) (tokens, error) {
	return c.requestTokens(ctx, client, t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}})
}

// isRefused reports whether the server refused the credentials, so that trying
// again is of no use (RFC 6749, 5.2).
func isRefused(err error) bool {
	var status *statusError
	if !errors.As(err, &status) {
		return false
	}
	switch status.code {
	case "invalid_grant", "invalid_client", "unauthorized_client", "invalid_target",
		"bad_refresh_token", "incorrect_client_credentials": // GitHub
		return true
	}
	return false
}
