package accesstoken_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
)

// requireRefused requires that a token is refused, with a code.
func requireRefused(t *testing.T, code string, err error) {
	t.Helper()
	var refused *accesstoken.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, code, refused.Code, refused.Reason)
}

func TestTokensThatAreAccepted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	k := s.newKey(t, "1")
	for name, c := range map[string]struct {
		change func(*accesstoken.Config)
		claims map[string]any
		user   string
	}{
		"a token":                {nil, nil, "alice"},
		"an audience of several": {nil, map[string]any{"aud": []string{"x", here}}, "alice"},
		"a profile's audience":   {nil, map[string]any{"aud": here + "/mcp/readers"}, "alice"},
		"a slash at the end":     {nil, map[string]any{"aud": here + "/"}, "alice"},
		"a configured audience":  {func(c *accesstoken.Config) { c.Audiences = []string{"api://tools"} }, map[string]any{"aud": "api://tools"}, "alice"},
		"a required scope":       {func(c *accesstoken.Config) { c.Scopes = []string{"tools"} }, nil, "alice"},
		"scopes in scp":          {func(c *accesstoken.Config) { c.Scopes = []string{"tools"} }, map[string]any{"scope": nil, "scp": []string{"tools"}}, "alice"},
		"an email address":       {func(c *accesstoken.Config) { c.UserClaim = "email" }, map[string]any{"email": "a@example.com", "email_verified": true}, "a@example.com"},
		"clocks that differ":     {nil, map[string]any{"exp": now.Add(-20 * time.Second).Unix(), "nbf": now.Add(20 * time.Second).Unix()}, "alice"},
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := s.verifier(t, c.change)
			u, err := v.Verify(t.Context(), k.sign(t, s.claims(c.claims)))
			require.NoError(t, err)
			require.Equal(t, c.user, u.Name)
			require.Nil(t, u.Profiles)
		})
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	s, other := newServer(t), newServer(t)
	k, stranger := s.newKey(t, "1"), other.newKey(t, "1")
	header := map[jose.HeaderKey]any{"kid": "1"}
	none := func(claims string) string {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "."
	}
	good := k.sign(t, s.claims(nil))
	for name, token := range map[string]string{
		"nothing":                      "",
		"text":                         "x",
		"three dots":                   "a.b.c",
		"no signature":                 none(`{"iss":"` + s.URL + `","aud":"` + here + `","sub":"alice","exp":99999999999}`),
		"signed with the public key":   sign(t, jose.HS256, k.public(t), header, s.claims(nil)),
		"signed by another":            stranger.sign(t, s.claims(nil)),
		"with its own key":             sign(t, jose.ES256, stranger.private, map[jose.HeaderKey]any{"kid": "1", "jwk": jose.JSONWebKey{Key: stranger.private.Public()}}, s.claims(nil)),
		"with the address of its keys": sign(t, jose.ES256, stranger.private, map[jose.HeaderKey]any{"kid": "1", "jku": other.URL + "/keys"}, s.claims(nil)),
		"changed":                      good[:len(good)-6] + "AAAAAA",
		"of another issuer":            k.sign(t, s.claims(map[string]any{"iss": other.URL})),
		"without an issuer":            k.sign(t, s.claims(map[string]any{"iss": nil})),
		"for another service":          k.sign(t, s.claims(map[string]any{"aud": "https://mail.example.com"})),
		"for a longer name":            k.sign(t, s.claims(map[string]any{"aud": here + ".evil.example/mcp"})),
		"for a longer path":            k.sign(t, s.claims(map[string]any{"aud": here + "/mcpx"})),
		"for another path":             k.sign(t, s.claims(map[string]any{"aud": here + "/v1"})),
		"for nobody":                   k.sign(t, s.claims(map[string]any{"aud": nil})),
		"expired":                      k.sign(t, s.claims(map[string]any{"exp": now.Add(-time.Minute).Unix()})),
		"without expiry":               k.sign(t, s.claims(map[string]any{"exp": nil})),
		"not valid yet":                k.sign(t, s.claims(map[string]any{"nbf": now.Add(time.Minute).Unix()})),
		"bound to a key":               k.sign(t, s.claims(map[string]any{"cnf": map[string]any{"jkt": "x"}})),
		"without a user":               k.sign(t, s.claims(map[string]any{"sub": nil})),
		"a user of another type":       k.sign(t, s.claims(map[string]any{"sub": 7})),
		"a user with a line break":     k.sign(t, s.claims(map[string]any{"sub": "alice\nadmin"})),
		"a logout token":               sign(t, jose.ES256, k.private, map[jose.HeaderKey]any{"kid": "1", "typ": "logout+jwt"}, s.claims(nil)),
		"very long":                    k.sign(t, s.claims(map[string]any{"x": strings.Repeat("x", 20_000)})),
		"with a line break":            good + "\n",
		"encrypted":                    "a.b.c.d.e",
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := s.verifier(t, nil)
			_, err := v.Verify(t.Context(), token)
			requireRefused(t, "invalid_token", err)
			if len(token) > 20 {
				require.NotContains(t, err.Error(), token[:20])
			}
		})
	}
	v, _ := s.verifier(t, func(c *accesstoken.Config) { c.Scopes = []string{"tools", "admin"} })
	_, err := v.Verify(t.Context(), good)
	requireRefused(t, "insufficient_scope", err)
	v, _ = s.verifier(t, func(c *accesstoken.Config) { c.UserClaim = "email" })
	_, err = v.Verify(t.Context(), k.sign(t, s.claims(map[string]any{"email": "a@example.com", "email_verified": false})))
	requireRefused(t, "invalid_token", err)
}

func TestProfilesOfUsers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	k := s.newKey(t, "1")
	v, _ := s.verifier(t, func(c *accesstoken.Config) {
		c.Groups = "realm_access.roles"
		c.Profiles = []accesstoken.ProfileGrant{{"admins", "*"}, {"writers", "rw"}, {"tools:read", "ro"}, {"writers", "ro"}}
	})
	roles := func(names ...string) map[string]any {
		return map[string]any{"realm_access": map[string]any{"roles": names}, "scope": "other"}
	}
	for name, c := range map[string]struct {
		claims map[string]any
		want   []string
	}{
		"a group":              {roles("writers"), []string{"rw", "ro"}},
		"a scope":              {map[string]any{"scope": "tools:read"}, []string{"ro"}},
		"all tools":            {roles("writers", "admins"), nil},
		"groups at another":    {map[string]any{"groups": []string{"admins"}, "scope": "tools:read"}, []string{"ro"}},
		"one group, as a text": {map[string]any{"realm_access": map[string]any{"roles": "writers"}}, []string{"rw", "ro"}},
	} {
		u, err := v.Verify(t.Context(), k.sign(t, s.claims(c.claims)))
		require.NoError(t, err, name)
		require.Equal(t, c.want, u.Profiles, name)
	}
	for _, claims := range []map[string]any{roles("others"), {"scope": nil}, {"scope": "admin"}, {"realm_access": "admins"}} {
		_, err := v.Verify(t.Context(), k.sign(t, s.claims(claims)))
		requireRefused(t, "insufficient_scope", err)
	}
}

// TestKeysAreReplaced: a token with a new key is accepted, and invented key
// ids do not cause a request each.
func TestKeysAreReplaced(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	first := s.newKey(t, "1")
	v, clock := s.verifier(t, nil)
	_, err := v.Verify(t.Context(), first.sign(t, s.claims(nil)))
	require.NoError(t, err)
	require.EqualValues(t, 1, s.keyReads.Load())
	second := s.newKey(t, "2")
	later := now.Add(time.Minute)
	clock.Store(&later)
	_, err = v.Verify(t.Context(), second.sign(t, s.claims(nil)))
	require.NoError(t, err)
	require.EqualValues(t, 2, s.keyReads.Load())
	for range 50 {
		_, err = v.Verify(t.Context(), key{"invented", newPrivate(t)}.sign(t, s.claims(nil)))
		requireRefused(t, "invalid_token", err)
	}
	require.EqualValues(t, 2, s.keyReads.Load())
}

func TestIntrospection(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	v, clock := s.verifier(t, func(c *accesstoken.Config) { c.ClientID, c.ClientSecret = "host", "k&y" })
	active := func(changes map[string]any) map[string]any {
		claims := s.claims(changes)
		claims["active"] = true
		return claims
	}
	s.set(func() {
		s.active["good"] = active(nil)
		s.active["other-issuer"] = active(map[string]any{"iss": "https://evil.example"})
		s.active["other-audience"] = active(map[string]any{"aud": "x"})
		s.active["no-audience"] = active(map[string]any{"aud": nil})
		s.active["expired"] = active(map[string]any{"exp": now.Add(-time.Hour).Unix()})
		s.active["bound"] = active(map[string]any{"cnf": map[string]any{"jkt": "x"}})
		text := active(nil)
		text["active"] = "true"
		s.active["text"] = text
	})
	for range 5 {
		u, err := v.Verify(t.Context(), "good")
		require.NoError(t, err)
		require.Equal(t, "alice", u.Name)
	}
	require.EqualValues(t, 1, s.introspections.Load())
	for _, token := range []string{"other-issuer", "other-audience", "no-audience", "expired", "bound", "text", "unknown"} {
		_, err := v.Verify(t.Context(), token)
		requireRefused(t, "invalid_token", err)
	}
	s.set(func() { delete(s.active, "good") }) // revoked
	later := now.Add(2 * time.Minute)
	clock.Store(&later)
	_, err := v.Verify(t.Context(), "good")
	requireRefused(t, "invalid_token", err)

	without, _ := s.verifier(t, nil)
	_, err = without.Verify(t.Context(), "good")
	requireRefused(t, "invalid_token", err)
	wrong, _ := s.verifier(t, func(c *accesstoken.Config) { c.ClientID, c.ClientSecret = "host", "other" })
	_, err = wrong.Verify(t.Context(), "good")
	require.ErrorContains(t, err, "introspection")
	require.False(t, errors.As(err, new(*accesstoken.Error)), "the token is not the reason")
}

// TestIssuersThatFail: a token is not refused because the issuer cannot be
// asked, and is accepted once it can.
func TestIssuersThatFail(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]http.HandlerFunc{
		"an error":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"a redirect":        func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"another issuer":    func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"issuer":"https://evil.example"}`)) },
		"no JSON":           func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
		"an endless answer": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(strings.Repeat(" ", 2<<20))) },
		"keys without https": func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(`{"issuer":"http://` + r.Host + `","jwks_uri":"http://evil.example/keys"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			k := s.newKey(t, "1")
			s.set(func() { s.broken = broken })
			v, clock := s.verifier(t, nil)
			token := k.sign(t, s.claims(nil))
			for range 3 {
				_, err := v.Verify(t.Context(), token)
				require.Error(t, err)
				require.False(t, errors.As(err, new(*accesstoken.Error)), "%v", err)
			}
			s.set(func() { s.broken = nil })
			later := now.Add(10 * time.Second)
			clock.Store(&later)
			_, err := v.Verify(t.Context(), token)
			require.NoError(t, err)
		})
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ issuer, url, want string }{
		{"", here, "issuer is required"},
		{"http://login.example.com", here, "https://"},
		{"https://login.example.com?x", here, "without query"},
		{"https://u@login.example.com", here, "without query"},
		{"login.example.com", here, "must be a URL"},
		{"https://login.example.com", "", "url is required"},
		{"https://login.example.com", "http://tools.example.com", "https://"},
		{"https://login.example.com", here + "/mcp", "without a path"},
	} {
		_, err := accesstoken.New(accesstoken.Config{Issuer: c.issuer, URL: c.url})
		require.ErrorContains(t, err, c.want, "%+v", c)
	}
}

// What an issuer sends instead of its keys is not told to clients.
func TestKeysThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"no keys": http.StatusOK, "an error": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			k := s.newKey(t, "1")
			s.set(func() {
				s.broken = func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/keys" {
						w.WriteHeader(status)
						w.Write([]byte("internal page"))
						return
					}
					w.Write([]byte(`{"issuer":"http://` + r.Host + `","jwks_uri":"http://` + r.Host + `/keys"}`))
				}
			})
			v, _ := s.verifier(t, nil)
			_, err := v.Verify(t.Context(), k.sign(t, s.claims(nil)))
			require.ErrorContains(t, err, "the issuer's keys cannot be read")
			require.NotContains(t, err.Error(), "internal page")
			require.False(t, errors.As(err, new(*accesstoken.Error)), "the token is not the reason")
		})
	}
}

// The keys' address can be in the second document only.
func TestMetadataWithoutKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	k := s.newKey(t, "1")
	s.set(func() {
		s.broken = func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/.well-known/oauth-authorization-server":
				w.Write([]byte(`{"issuer":"http://` + r.Host + `"}`))
			case "/.well-known/openid-configuration":
				w.Write([]byte(`{"issuer":"http://` + r.Host + `","jwks_uri":"http://` + r.Host + `/keys"}`))
			default:
				json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: s.keys})
			}
		}
	})
	v, _ := s.verifier(t, nil)
	_, err := v.Verify(t.Context(), k.sign(t, s.claims(nil)))
	require.NoError(t, err)
}

// A wrong issuer is reported to the owner of the host once, not with each request of a user.
func TestWrongIssuerIsReportedOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	k := s.newKey(t, "1")
	var reports []string
	v, clock := s.verifier(t, func(c *accesstoken.Config) { c.Report = func(err error) { reports = append(reports, err.Error()) } })
	s.set(func() { s.metadata["issuer"] = s.URL + "/" })
	for i := range 3 {
		later := now.Add(time.Duration(i) * time.Minute)
		clock.Store(&later)
		_, err := v.Verify(t.Context(), k.sign(t, s.claims(nil)))
		require.Error(t, err)
		require.ErrorContains(t, v.CheckIssuer(t.Context()), "belongs to the issuer")
	}
	require.Len(t, reports, 1)
	require.Contains(t, reports[0], s.URL+"/")

	later := now.Add(time.Hour)
	clock.Store(&later)
	s.set(func() { s.metadata["issuer"] = s.URL })
	require.NoError(t, v.CheckIssuer(t.Context()))
	require.Len(t, reports, 1)
}

func TestIssuerWithoutKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.newKey(t, "1")
	s.set(func() { delete(s.metadata, "jwks_uri") })
	v, _ := s.verifier(t, nil)
	require.ErrorContains(t, v.CheckIssuer(t.Context()), "no jwks_uri")
	v, _ = s.verifier(t, func(c *accesstoken.Config) { c.ClientID = "host" })
	require.NoError(t, v.CheckIssuer(t.Context()), "it has introspection")
}
