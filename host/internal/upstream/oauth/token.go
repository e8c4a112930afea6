package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
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

// NotRevokedError says that tokens are deleted here, but may still be valid at the
// authorization server. It unwraps to Err.
type NotRevokedError struct{ Err error }

func (e *NotRevokedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NotRevokedError) Unwrap() error { return e.Err }

// Logout deletes the tokens and the registration, also those of the identity provider, and then
// revokes the tokens (RFC 7009). It returns a *NotRevokedError if only that fails; another error
// means that they are not deleted. found is false if no tokens were deleted.
func Logout(ctx context.Context, c Config) (found bool, err error) {
	c.discardUnreadable = true
	if c.signsInAtIdentityProvider() {
		defer func() {
			signedIn, fault := Logout(ctx, c.identityConfig())
			found, err = found || signedIn, errors.Join(err, fault)
		}()
	}
	var deleted *tokens
	var lost error
	err = c.updateRecord(ctx, func(r *record) (bool, error) {
		deleted, lost = r.Tokens, r.lost
		r.Tokens, r.Wanted, r.StepUps = nil, nil, 0
		r.Clients = nil // the next sign-in registers again: the server may have lost the registration
		return true, nil
	})
	switch {
	case err != nil:
		return false, err
	case lost != nil:
		return true, &NotRevokedError{fmt.Errorf("they are not revoked: %w", lost)}
	case deleted == nil:
		return false, nil
	}
	if err := c.revoke(ctx, *deleted); err != nil {
		return true, &NotRevokedError{err}
	}
	return true, nil
}

// LogoutUsers signs all users of serve out of a server, as Logout does, deletes the registration
// that they share, and returns their number. It continues after an error and returns all errors.
func LogoutUsers(ctx context.Context, c Config) (users int, err error) {
	subjects, err := c.subjects(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, subject := range subjects {
		of := c
		of.Subject = subject
		if strings.HasPrefix(subject, redirectSubjectPrefix) {
			errs = append(errs, of.forgetClients(ctx))
			continue
		}
		found, err := Logout(ctx, of)
		if found {
			users++
		}
		errs = append(errs, err)
	}
	return users, errors.Join(errs...)
}

// subjects returns the subjects that have a record of this server, without the host itself.
func (c Config) subjects(ctx context.Context) (subjects []string, err error) {
	if _, ok, err := c.clusterRecord(); err != nil {
		return nil, err
	} else if ok {
		return c.clusterSubjects(ctx)
	}
	files, err := filepath.Glob(filepath.Join(c.recordsDir(), "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		of := c
		if of.Subject = subjectIn(file); of.Subject != "" && of.recordFile() == file {
			subjects = append(subjects, of.Subject)
		}
	}
	return subjects, nil
}

// revoke revokes the refresh and the access token at the authorization server, and returns the errors
// of both; also an error if the server cannot revoke tokens.
func (c Config) revoke(ctx context.Context, t tokens) error {
	if c.openID {
		t.Access = "" // an ID token cannot be revoked
	}
	if t.Access == "" && t.Refresh == "" {
		return nil
	}
	if t.Revocation == "" {
		return errors.New("the authorization server cannot revoke tokens; the access token stays valid until it expires")
	}
	client := c.newHTTP()
	var errs []error
	for _, one := range []struct{ hint, token string }{{"refresh_token", t.Refresh}, {"access_token", t.Access}} {
		if one.token == "" {
			continue
		}
		if err := c.postForm(ctx, client, t.Revocation, t.Client, url.Values{"token": {one.token}, "token_type_hint": {one.hint}}, nil); err != nil {
			errs = append(errs, fmt.Errorf("revoking the %s: %w", strings.ReplaceAll(one.hint, "_", " "), err))
		}
	}
	return errors.Join(errs...)
}
