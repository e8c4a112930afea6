package accesstoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// Exchange describes the token that Verifier.Exchange requests (RFC 8693). Empty fields
// are not sent.
type Exchange struct {
	Audience string // name of the service at the issuer
	Resource string // address of the service
	Scopes   []string
}

// ExchangedToken is an access token for another service.
type ExchangedToken struct {
	Access  secret.Text
	Issued  time.Time
	Expires time.Time // zero: the issuer did not say
}

const (
	exchangeGrant   = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessTokenType = "urn:ietf:params:oauth:token-type:access_token"
	jwtTokenType    = "urn:ietf:params:oauth:token-type:jwt"
)

// Exchange returns an access token of the issuer for another service, on behalf of the user
// of a verified token. It never returns the user's token itself. It returns an error if the
// issuer refuses, or sends no bearer token.
func (v *Verifier) Exchange(ctx context.Context, token string, to Exchange) (ExchangedToken, error) {
	form := url.Values{
		"grant_type": {exchangeGrant}, "subject_token": {token}, "subject_token_type": {accessTokenType}, "requested_token_type": {accessTokenType},
	}
	for name, value := range map[string]string{"audience": to.Audience, "resource": to.Resource, "scope": strings.Join(to.Scopes, " ")} {
		if value != "" {
			form.Set(name, value)
		}
	}
	begin := v.cfg.Now()
	var got struct {
		Access  string  `json:"access_token"`
		Type    string  `json:"token_type"`
		Issued  string  `json:"issued_token_type"`
		Expires float64 `json:"expires_in"`
	}
	if err := v.postToken(ctx, form, &got); err != nil {
		return ExchangedToken{}, fmt.Errorf("token exchange: %w", err)
	}
	switch {
	case got.Access == "" || len(got.Access) > maxToken || strings.ContainsFunc(got.Access, func(r rune) bool { return r <= ' ' || r > '~' }):
		return ExchangedToken{}, errors.New("token exchange: the issuer sent no access token that a header can carry")
	case got.Issued != accessTokenType && got.Issued != jwtTokenType:
		return ExchangedToken{}, fmt.Errorf("token exchange: the issuer sent a token of the type %.80q, not an access token", got.Issued)
	case !strings.EqualFold(got.Type, "Bearer"):
		return ExchangedToken{}, fmt.Errorf("token exchange: the issuer sent a token of the type %.40q; only Bearer is supported", got.Type)
	case got.Access == token:
		return ExchangedToken{}, errors.New("token exchange: the issuer returned the user's own token, which is for this host only")
	}
	e := ExchangedToken{Access: secret.Text(got.Access), Issued: begin}
	if got.Expires > 0 {
		e.Expires = begin.Add(time.Duration(min(got.Expires, 1e8) * float64(time.Second)))
	}
	return e, nil
}

// postToken posts a form to the issuer's token endpoint with the credentials of this
// host, and decodes the JSON answer into into. Errors contain the error code of the
// answer, and nothing else of its body.
func (v *Verifier) postToken(ctx context.Context, form url.Values, into any) error {
	from, err := v.metadata(ctx)
	switch {
	case err != nil:
		return err
	case from.Token == "":
		return errors.New("the issuer's metadata has no token_endpoint")
	case v.cfg.ClientID == "":
		return errors.New("it needs auth.client_id")
	}
	if v.cfg.ClientSecret == "" {
		form.Set("client_id", v.cfg.ClientID)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, from.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return errors.New("the issuer's token_endpoint is malformed")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if v.cfg.ClientSecret != "" {
		req.SetBasicAuth(url.QueryEscape(v.cfg.ClientID), url.QueryEscape(v.cfg.ClientSecret.Reveal())) // RFC 6749, section 2.3.1
	}
	res, err := v.client.Do(req)
	if err != nil {
		return fmt.Errorf("the authorization server cannot be reached: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("the answer of %s broke off: %w", req.URL.Host, err)
	case len(body) > maxAnswer:
		return fmt.Errorf("the answer of %s has more than %d bytes", req.URL.Host, maxAnswer)
	case res.StatusCode != http.StatusOK:
		return refusedRequest(req.URL.Host, res.StatusCode, body)
	case json.Unmarshal(body, into) != nil:
		return fmt.Errorf("the answer of %s is not the expected JSON", req.URL.Host)
	}
	return nil
}

// refusedRequest returns the error for an answer with another status than 200: with its
// error code (RFC 6749, section 5.2), or else with the status.
func refusedRequest(host string, status int, body []byte) error {
	var told struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &told) == nil && told.Error != "" {
		return fmt.Errorf("%s refused: %.60q", host, told.Error)
	}
	return fmt.Errorf("%s answered with status %d", host, status)
}
