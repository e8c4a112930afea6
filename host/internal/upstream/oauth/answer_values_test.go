package oauth

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Providers that answer in other ways than RFC 6749 says, as GitHub, Slack and older ones do.
func TestAnswersOfOtherProviders(t *testing.T) {
	for name, c := range map[string]struct {
		answer  map[string]any
		expires time.Duration // about; 0: not at all
		scopes  []string
		want    string // of the error
	}{
		"a string of seconds":      {answer: map[string]any{"access_token": "a", "expires_in": "3600"}, expires: time.Hour, scopes: []string{"read"}},
		"seconds with a fraction":  {answer: map[string]any{"access_token": "a", "expires_in": 3600.5}, expires: time.Hour, scopes: []string{"read"}},
		"an empty string":          {answer: map[string]any{"access_token": "a", "expires_in": ""}, scopes: []string{"read"}},
		"null":                     {answer: map[string]any{"access_token": "a", "expires_in": nil, "scope": nil}, scopes: []string{"read"}},
		"a list of scopes":         {answer: map[string]any{"access_token": "a", "scope": []string{"read", "write"}}, scopes: []string{"read", "write"}},
		"commas between scopes":    {answer: map[string]any{"access_token": "a", "scope": "repo,gist"}, scopes: []string{"repo", "gist"}},
		"type in lower case":       {answer: map[string]any{"access_token": "a", "token_type": "bearer"}, scopes: []string{"read"}},
		"not a number":             {answer: map[string]any{"access_token": "a", "expires_in": "soon"}, want: `"expires_in" has another type`},
		"an infinite number":       {answer: map[string]any{"access_token": "a", "expires_in": "inf"}, want: `"expires_in" has another type`},
		"a boolean":                {answer: map[string]any{"access_token": "a", "expires_in": true}, want: `"expires_in" has another type`},
		"an error with status 200": {answer: map[string]any{"error": "bad_verification_code", "error_description": "The code passed is incorrect."}, want: `"bad_verification_code" ("The code passed is incorrect.")`},
		"an error as Slack has it": {answer: map[string]any{"ok": false, "error": "invalid_code"}, want: `"invalid_code"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.token = func(w http.ResponseWriter, _ *http.Request) bool { writeJSON(w, c.answer); return true }
			cfg := p.config()
			begun := time.Now()
			status, err := p.login(cfg)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.scopes, status.Scopes)
			if c.expires == 0 {
				require.Zero(t, status.Until)
			} else {
				require.WithinRange(t, status.Until, begun.Add(c.expires), time.Now().Add(c.expires+time.Second))
			}
		})
	}
}

// A refresh token that GitHub no longer accepts, which it says with status 200, ends the
// sign-in.
func TestRefreshIsRefusedWithStatus200(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	s := NewSource(c)
	_, err := s.Token(t.Context())
	require.NoError(t, err)
	p.token = func(w http.ResponseWriter, _ *http.Request) bool {
		writeJSON(w, map[string]any{"error": "bad_refresh_token", "error_description": "The refresh token passed is incorrect or expired."})
		return true
	}
	_, err = s.Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
	require.ErrorIs(t, err, ErrSignIn)
	status, _, err := c.Status()
	require.NoError(t, err)
	require.False(t, status.SignedIn)
}

// The device flow goes on while the server says with any status that the user has not
// decided, or cannot be reached for a moment.
func TestDeviceFlowGoesOn(t *testing.T) {
	p := newProvider(t)
	answers := []func(http.ResponseWriter){
		func(w http.ResponseWriter) { writeJSON(w, map[string]any{"error": "authorization_pending"}) }, // GitHub's status is 200
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			writeJSON(w, map[string]any{"error": "authorization_pending"})
		},
	}
	p.token = func(w http.ResponseWriter, _ *http.Request) bool {
		if len(answers) == 0 {
			return false
		}
		answer := answers[0]
		answers = answers[1:]
		answer(w)
		return true
	}
	status, err := Login(t.Context(), p.config(), Prompt{Device: func(string, string) error { return nil }})
	require.NoError(t, err)
	require.True(t, status.SignedIn)
	require.Empty(t, answers)

	p.token = func(w http.ResponseWriter, _ *http.Request) bool {
		writeJSON(w, map[string]any{"error": "access_denied"})
		return true
	}
	_, err = Login(t.Context(), p.config(), Prompt{Device: func(string, string) error { return nil }})
	require.ErrorContains(t, err, "access_denied")
}

// A registration whose secret expires at a time that is a string or has a fraction.
func TestExpiryOfARegistration(t *testing.T) {
	for name, at := range map[string]any{"a string": "0", "a fraction": 4102444800.5, "far away": 1e300, "a number": 4102444800} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.registration = map[string]any{"client_secret_expires_at": at}
			c := p.signedIn()
			status, ok, err := c.Status()
			require.NoError(t, err)
			require.True(t, ok && status.SignedIn)
		})
	}
}

// Secrets that a server repeats in its errors reach neither models nor logs.
func TestErrorsHideWhatWasSent(t *testing.T) {
	p := newProvider(t)
	p.registration = map[string]any{"client_secret": "top secret+value", "token_endpoint_auth_method": "client_secret_post"}
	p.metadata = func(m map[string]any) {
		m["token_endpoint_auth_methods_supported"] = []string{"client_secret_post", "client_secret_basic"}
	}
	p.token = func(w http.ResponseWriter, req *http.Request) bool {
		if req.FormValue("grant_type") != "refresh_token" {
			writeJSON(w, map[string]any{"access_token": "access-1", "refresh_token": "a refresh token/1", "expires_in": 3600})
			return true
		}
		w.WriteHeader(http.StatusBadRequest)
		writeJSON(w, map[string]any{
			"error":             "invalid_grant",
			"error_description": "the refresh token passed is expired: " + req.FormValue("refresh_token") + ", " + url.QueryEscape(req.FormValue("client_secret")) + ", " + req.FormValue("client_secret"),
		})
		return true
	}
	c := p.signedIn()
	s := NewSource(c)
	_, err := s.Token(t.Context())
	require.NoError(t, err)
	_, err = s.Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
	require.ErrorIs(t, err, ErrSignIn)
	require.ErrorContains(t, err, `"invalid_grant" ("the refresh token passed is expired: ***, ***, ***")`)
}

// Google's device flow has another name for the address.
func TestDeviceFlowOfGoogle(t *testing.T) {
	p := newProvider(t)
	p.device = func(doc map[string]any) {
		doc["verification_url"], doc["interval"], doc["expires_in"] = doc["verification_uri"], "0", "60"
		delete(doc, "verification_uri")
	}
	shown := ""
	status, err := Login(t.Context(), p.config(), Prompt{Device: func(address, _ string) error { shown = address; return nil }})
	require.NoError(t, err)
	require.True(t, status.SignedIn)
	require.Equal(t, p.auth.URL+"/enter", shown)
}
