package oauth

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// singleSignOn is an identity provider at which a user signs in. claims changes the claims of
// the ID tokens that it sends, of which it accepts the last one.
type singleSignOn struct {
	*httptest.Server
	claims func(map[string]any)

	mu      sync.Mutex
	asked   url.Values   // parameters of the last authorization request
	forms   []url.Values // requests at the token endpoint
	current string       // ID token
	refresh bool         // it sends refresh tokens
	revoked []string
}

func newSingleSignOn(t *testing.T) *singleSignOn {
	s := &singleSignOn{refresh: true}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *singleSignOn) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.ParseForm() //nolint:errcheck // a malformed form has no values
	switch req.URL.Path {
	case "/.well-known/openid-configuration":
		writeJSON(w, map[string]any{"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "revocation_endpoint": s.URL + "/revoke", "scopes_supported": []string{"openid", "offline_access"}})
	case "/authorize":
		s.asked = req.Form
		http.Redirect(w, req, req.FormValue("redirect_uri")+"?"+url.Values{"code": {"c"}, "state": {req.FormValue("state")}}.Encode(), http.StatusFound)
	case "/revoke":
		s.revoked = append(s.revoked, req.FormValue("token"))
	case "/token":
		s.forms = append(s.forms, req.Form)
		if req.FormValue("grant_type") == exchangeGrant {
			if req.FormValue("subject_token") != s.current {
				w.WriteHeader(http.StatusBadRequest)
				writeJSON(w, map[string]any{"error": "invalid_grant"})
				return
			}
			writeJSON(w, map[string]any{"access_token": "a.jag.x", "issued_token_type": idJAGType, "token_type": "N_A"})
			return
		}
		claims := map[string]any{"iss": s.URL, "aud": "host-at-idp", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix(), "jti": len(s.forms)}
		if req.FormValue("grant_type") == "authorization_code" {
			claims["nonce"] = s.asked.Get("nonce")
		}
		if s.claims != nil {
			s.claims(claims)
		}
		text, err := json.Marshal(claims)
		if err != nil {
			panic(err)
		}
		s.current = "id." + base64.RawURLEncoding.EncodeToString(text) + ".x"
		answer := map[string]any{"access_token": "idp", "token_type": "Bearer", "id_token": s.current}
		if s.refresh {
			answer["refresh_token"] = "idp-refresh"
		}
		writeJSON(w, answer)
	default:
		http.NotFound(w, req)
	}
}

// config returns a configuration without an ID token.
func (s *singleSignOn) config(p *provider) Config {
	c := p.config()
	c.Grant, c.ClientID, c.ClientSecret = IDJAG, "host", "s"
	c.IdentityProvider = IdentityProvider{Issuer: s.URL, ClientID: "host-at-idp", ClientSecret: "key"}
	return c
}

// grants returns the types of the requests at the token endpoint.
func (s *singleSignOn) grants() (grants []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, form := range s.forms {
		grants = append(grants, strings.TrimPrefix(form.Get("grant_type"), "urn:ietf:params:oauth:grant-type:"))
	}
	return grants
}

// The user signs in at the identity provider once for all servers.
func TestSignInAtTheIdentityProvider(t *testing.T) {
	s, p := newSingleSignOn(t), newProvider(t)
	c := s.config(p)
	require.NoError(t, c.Validate())
	_, err := NewSource(c).refreshOrReread(t.Context(), "", true)
	require.ErrorIs(t, err, ErrSignIn)
	require.ErrorContains(t, err, "needs a sign-in at the identity provider")
	require.ErrorContains(t, err, "mcp-host login notes")

	status, err := p.login(c)
	require.NoError(t, err)
	require.True(t, status.SignedIn)
	require.Equal(t, "openid offline_access", s.asked.Get("scope"))
	require.Equal(t, "S256", s.asked.Get("code_challenge_method"))
	require.Empty(t, s.asked.Get("resource"))
	require.Equal(t, []string{"authorization_code", "token-exchange"}, s.grants())
	require.Equal(t, s.current, s.forms[1].Get("subject_token"))
	require.Equal(t, "a.jag.x", p.forms[0].Get("assertion"))
	for _, form := range p.forms {
		require.NotContains(t, form.Encode(), s.current, "the ID token is for the identity provider only")
	}

	other := newProvider(t)
	second := s.config(other)
	second.Storage = c.Storage
	token, err := NewSource(second).refreshOrReread(t.Context(), "", true)
	require.NoError(t, err)
	require.Equal(t, "access-1", token.Access)
	_, err = Login(t.Context(), second, Prompt{Open: func(string) error { t.Error("no browser is needed"); return nil }})
	require.NoError(t, err)
	require.Equal(t, 1, slices.Index(s.grants(), "token-exchange"))
	require.NotContains(t, s.grants()[1:], "authorization_code")

	found, err := Logout(t.Context(), c)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, []string{"idp-refresh"}, s.revoked)
	_, err = NewSource(c).refreshOrReread(t.Context(), "", true)
	require.ErrorIs(t, err, ErrSignIn)
}

// An ID token that has expired is refreshed. Without a refresh token, or if the identity provider
// refuses it, the user signs in again.
func TestIDTokenThatHasExpired(t *testing.T) {
	s, p := newSingleSignOn(t), newProvider(t)
	c := s.config(p)
	first := true
	s.claims = func(claims map[string]any) {
		if first {
			claims["exp"] = time.Now().Add(-time.Hour).Unix()
		}
		first = false
	}
	_, err := p.login(c)
	require.NoError(t, err)
	require.Equal(t, []string{"authorization_code", "refresh_token", "token-exchange"}, s.grants())

	s.mu.Lock()
	s.current = "revoked"
	s.mu.Unlock()
	_, err = NewSource(c).refreshOrReread(t.Context(), "access-1", true)
	require.ErrorIs(t, err, ErrSignIn)
	require.ErrorContains(t, err, "does not accept the sign-in of the user any more")
	_, err = p.login(c)
	require.NoError(t, err)

	s = newSingleSignOn(t)
	c = s.config(p)
	s.refresh = false
	_, err = p.login(c)
	require.NoError(t, err)
	r, err := c.identityConfig().loadRecord(t.Context())
	require.NoError(t, err)
	r.Tokens.Expires = time.Now().Add(-time.Second)
	require.NoError(t, c.identityConfig().saveRecord(t.Context(), r))
	of, err := c.loadRecord(t.Context())
	require.NoError(t, err)
	_, err = NewSource(c).refreshOrReread(t.Context(), of.Tokens.Access, true)
	require.ErrorIs(t, err, ErrSignIn)
}

// An ID token of a provider whose clock is slow or fast is used for its lifetime.
func TestClockOfTheIdentityProvider(t *testing.T) {
	for _, ahead := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
		s, p := newSingleSignOn(t), newProvider(t)
		s.claims = func(claims map[string]any) {
			at := time.Now().Add(ahead)
			claims["iat"], claims["exp"] = at.Unix(), at.Add(time.Hour).Unix()
		}
		c := s.config(p)
		_, err := p.login(c)
		require.NoError(t, err)
		require.Equal(t, []string{"authorization_code", "token-exchange"}, s.grants())
		status, _, err := c.identityConfig().Status()
		require.NoError(t, err)
		require.Less(t, time.Until(status.Until), time.Hour+time.Minute)
		require.Greater(t, time.Until(status.Until), 30*time.Minute)
	}
}

func TestIDTokensThatAreRefused(t *testing.T) {
	for want, change := range map[string]func(map[string]any){
		"of another issuer":           func(c map[string]any) { c["iss"] = "https://evil.example" },
		"for another client":          func(c map[string]any) { c["aud"] = []string{"x", "y"} },
		"no subject or no expiry":     func(c map[string]any) { delete(c, "sub") },
		"no subject or no expiry ":    func(c map[string]any) { c["exp"] = 0 },
		"belongs to another sign-in":  func(c map[string]any) { c["nonce"] = "x" },
		"belongs to another sign-in ": func(c map[string]any) { delete(c, "nonce") },
		"malformed":                   func(c map[string]any) { c["exp"] = "soon" },
	} {
		t.Run(want, func(t *testing.T) {
			s, p := newSingleSignOn(t), newProvider(t)
			s.claims = change
			c := s.config(p)
			_, err := p.login(c)
			require.ErrorContains(t, err, strings.TrimSpace(want))
			require.NotContains(t, err.Error(), s.current)
			require.Zero(t, p.count())
			_, err = NewSource(c).refreshOrReread(t.Context(), "", true)
			require.ErrorIs(t, err, ErrSignIn)
		})
	}
}
