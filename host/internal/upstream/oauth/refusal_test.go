package oauth

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	justIssued      = "server notes refuses the token that its provider has just issued"
	justIssuedLogin = justIssued + "; check its scopes and its account, or sign in again: run mcp-host login notes"
)

// answered gives the source the answer to a request with a token.
func answered(t *testing.T, s *Source, token string, status int) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "https://mcp.example.com/", nil)
	require.NoError(t, err)
	require.NoError(t, s.Sign(req, token))
	require.False(t, s.Received(&http.Response{StatusCode: status, Request: req, Header: http.Header{}}))
}

// A server that refuses every token, as with a wrong audience, does not make the host refresh
// with each request: refresh tokens change, and providers limit refreshes.
func TestServerThatRefusesNewTokens(t *testing.T) {
	p := newProvider(t)
	s := NewSource(p.signedIn())
	refuse := func(token string) (bool, error) {
		got, err := s.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, token, got)
		answered(t, s, token, http.StatusUnauthorized)
		return s.Refused(t.Context(), token, http.StatusUnauthorized, []string{`Bearer error="invalid_token"`})
	}
	again, err := refuse("access-1")
	require.NoError(t, err)
	require.True(t, again)
	for range 3 { // the repeated request, and further ones
		again, err = refuse("access-2")
		require.EqualError(t, err, justIssuedLogin)
		require.ErrorIs(t, err, ErrSignIn)
		require.False(t, s.Changed(), "there is nothing to connect again for")
		require.False(t, again)
	}
	require.Equal(t, 1, p.refreshed)

	// The server accepts the token for some requests only.
	answered(t, s, "access-2", http.StatusOK)
	_, err = refuse("access-2")
	require.EqualError(t, err, justIssuedLogin)
	require.Equal(t, 1, p.refreshed)

	// Later it is tried again, once.
	s.refusedAt = s.refusedAt.Add(-refreshPause)
	again, err = refuse("access-2")
	require.NoError(t, err)
	require.True(t, again)
	for range 3 {
		_, err = refuse("access-3")
		require.EqualError(t, err, justIssuedLogin)
	}
	require.Equal(t, 2, p.refreshed)
}

// A token that the server accepted before is refreshed at each refusal: servers end tokens
// before their time, as after a restart.
func TestAcceptedTokensAreRefreshed(t *testing.T) {
	p := newProvider(t)
	s := NewSource(p.signedIn())
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	for i := range 3 {
		answered(t, s, token, http.StatusBadGateway)
		answered(t, s, token, http.StatusOK)
		again, err := s.Refused(t.Context(), token, http.StatusUnauthorized, nil)
		require.NoError(t, err)
		require.True(t, again)
		require.Equal(t, i+1, p.refreshed)
		token, err = s.Token(t.Context())
		require.NoError(t, err)
	}
	answered(t, s, token, http.StatusBadGateway) // of a proxy, which does not check tokens
	_, err = s.Refused(t.Context(), token, http.StatusUnauthorized, nil)
	require.EqualError(t, err, justIssuedLogin)
}

// A sign-in by another process ends the pause.
func TestSignInAfterRefusedToken(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	s := NewSource(c)
	_, err := s.Token(t.Context())
	require.NoError(t, err)
	_, err = s.Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
	require.NoError(t, err)
	_, err = s.Refused(t.Context(), "access-2", http.StatusUnauthorized, nil)
	require.EqualError(t, err, justIssuedLogin)
	_, err = p.login(c)
	require.NoError(t, err)
	again, err := s.Refused(t.Context(), "access-2", http.StatusUnauthorized, nil)
	require.NoError(t, err)
	require.True(t, again)
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-3", token)
}

// Also without a running host, it is said that the server refused the token, until there is another one.
func TestRefusedTokenIsTold(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	s := NewSource(c)
	told := func(refused bool) {
		t.Helper()
		a, ok, err := c.Status()
		require.NoError(t, err)
		require.True(t, ok)
		require.True(t, a.SignedIn)
		require.Equal(t, refused, !a.Refused.IsZero())
		if refused {
			require.Contains(t, a.String(), ", the token was last refused by the server at "+a.Refused.Local().Format(time.DateTime))
		}
		require.Contains(t, a.String(), "signed in, renewed at ")
	}
	refuse := func(token string) {
		t.Helper()
		_, err := s.Refused(t.Context(), token, http.StatusUnauthorized, nil)
		require.EqualError(t, err, justIssuedLogin)
	}
	_, err := s.Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
	require.NoError(t, err)
	told(false)
	refuse("access-2")
	told(true)
	s.refusedAt = s.refusedAt.Add(-refreshPause)
	_, err = s.Refused(t.Context(), "access-2", http.StatusUnauthorized, nil)
	require.NoError(t, err)
	told(false)
	refuse("access-3")
	told(true)
	_, err = p.login(c)
	require.NoError(t, err)
	told(false)
}

// If the server refuses the tokens of a new sign-in, too, users are not asked to sign in with each call.
func TestServerThatRefusesTheTokensOfANewSignIn(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	s := NewSource(c)
	refuse := func() error {
		token, err := s.Token(t.Context())
		require.NoError(t, err)
		again, err := s.Refused(t.Context(), token, http.StatusUnauthorized, nil)
		if again {
			token, err = s.Token(t.Context())
			require.NoError(t, err)
			_, err = s.Refused(t.Context(), token, http.StatusUnauthorized, nil)
		}
		return err
	}
	require.ErrorIs(t, refuse(), ErrSignIn)
	for range 2 {
		_, err := p.login(c)
		require.NoError(t, err)
		require.NoError(t, s.checkStore(t.Context()))
		for range 3 {
			err = refuse()
			require.ErrorContains(t, err, justIssued+", although the user signed in again at ")
			require.ErrorContains(t, err, "or run mcp-host login notes")
			require.NotErrorIs(t, err, ErrSignIn)
		}
	}
	require.NoError(t, c.updateRecord(t.Context(), func(r *record) (bool, error) {
		r.SignedInAgain = r.SignedInAgain.Add(-signInPause)
		return true, nil
	}))
	require.ErrorIs(t, refuse(), ErrSignIn)
}

// New tokens of a program that signs in alone have the same bound.
func TestServerThatRefusesNewTokensOfMachines(t *testing.T) {
	p := newProvider(t)
	c := p.config()
	c.Grant, c.ClientID, c.ClientSecret = ClientCredentials, "machine", "s"
	s := NewSource(c)
	_, err := s.Refused(t.Context(), "", http.StatusUnauthorized, nil)
	require.NoError(t, err)
	for range 3 {
		_, err = s.Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
		require.EqualError(t, err, justIssued)
		require.NotErrorIs(t, err, ErrSignIn)
	}
	require.Equal(t, 1, p.count())
}

// Not every provider refuses a refresh token with an error code.
func TestRefreshRefusedWithoutCode(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		expires time.Duration // 0: the server does not say
		ended   bool
	}{
		"400, expired":       {http.StatusBadRequest, -time.Second, true},
		"401, expired":       {http.StatusUnauthorized, -time.Second, true},
		"400, no expiry":     {http.StatusBadRequest, 0, true},
		"400, not expired":   {http.StatusBadRequest, time.Hour, false},
		"503, expired":       {http.StatusServiceUnavailable, -time.Second, false},
		"403, as of a proxy": {http.StatusForbidden, -time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			cfg := p.signedIn()
			require.NoError(t, cfg.updateRecord(t.Context(), func(r *record) (bool, error) {
				r.Tokens.Expires = time.Time{}
				if c.expires != 0 {
					r.Tokens.Expires = time.Now().Add(c.expires)
				}
				return true, nil
			}))
			p.token = func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, "<html>no</html>", c.status)
				return true
			}
			_, err := NewSource(cfg).Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
			a, _, fault := cfg.Status()
			require.NoError(t, fault)
			require.Equal(t, !c.ended, a.SignedIn)
			if c.ended {
				require.ErrorIs(t, err, ErrSignIn)
				require.ErrorContains(t, err, "mcp-host login notes")
				require.Equal(t, "needs sign-in", a.String())
			} else {
				require.ErrorContains(t, err, "cannot be refreshed")
				require.NotErrorIs(t, err, ErrSignIn)
			}
		})
	}
}

func TestRenewalInThePastIsNotTold(t *testing.T) {
	a := SignInStatus{SignedIn: true, Refreshes: true, Until: time.Now().Add(-time.Minute)}
	require.Equal(t, "signed in, renewed at the next request", a.String())
	a.Until = time.Now().Add(time.Hour)
	require.Equal(t, "signed in, renewed at "+a.Until.Local().Format(time.DateTime), a.String())
}
