package accesstoken_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
)

// tokenEndpoint gives a server a token endpoint that answers with answer, and returns
// the forms that it received.
func tokenEndpoint(t *testing.T, s *server, answer http.HandlerFunc) (forms func() []url.Values) {
	t.Helper()
	var mu sync.Mutex
	var got []url.Values
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		r.ParseForm() //nolint:errcheck // a malformed form has no values
		mu.Lock()
		r.Form.Set("basic", id+":"+secret)
		got = append(got, r.Form)
		mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(at.Close)
	s.set(func() {
		s.metadata["token_endpoint"], s.metadata["authorization_endpoint"] = at.URL+"/token", s.URL+"/authorize?tenant=1"
		s.metadata["authorization_response_iss_parameter_supported"] = true
	})
	return func() []url.Values {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

func withClient(c *accesstoken.Config) { c.ClientID, c.ClientSecret = "host", "k&y" }

func reply(t *testing.T, members map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(members); err != nil {
			t.Error(err)
		}
	}
}

func TestExchange(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	forms := tokenEndpoint(t, s, reply(t, map[string]any{
		"access_token": "other", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "bearer", "expires_in": 60,
	}))
	v, _ := s.verifier(t, withClient)
	x, err := v.Exchange(t.Context(), "users", accesstoken.Exchange{Audience: "wiki", Scopes: []string{"a", "b"}})
	require.NoError(t, err)
	require.Equal(t, "other", x.Access.Reveal())
	require.Equal(t, now.Add(time.Minute), x.Expires)
	require.Len(t, forms(), 1)
	require.Equal(t, url.Values{
		"basic": {"host:k%26y"}, "grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {"users"},
		"subject_token_type":   {"urn:ietf:params:oauth:token-type:access_token"},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "audience": {"wiki"}, "scope": {"a b"},
	}, forms()[0])
}

func TestExchangesThatAreRefused(t *testing.T) {
	t.Parallel()
	good := func(changes map[string]any) map[string]any {
		members := map[string]any{"access_token": "other", "issued_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_type": "Bearer"}
		for name, value := range changes {
			members[name] = value
		}
		return members
	}
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer stranger.Close()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"the user's own token": {reply(t, good(map[string]any{"access_token": "users"})), "the user's own token"},
		"no token":             {reply(t, good(map[string]any{"access_token": ""})), "no access token"},
		"a token with a break": {reply(t, good(map[string]any{"access_token": "a\r\nX: y"})), "no access token"},
		"a refresh token":      {reply(t, good(map[string]any{"issued_token_type": "urn:ietf:params:oauth:token-type:refresh_token"})), "not an access token"},
		"no kind of token":     {reply(t, good(map[string]any{"token_type": "N_A"})), "only Bearer"},
		"a refusal": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			reply(t, map[string]any{"error": "access_denied", "error_description": "SEKRIT"})(w, nil)
		}, `"access_denied"`},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, stranger.URL, http.StatusTemporaryRedirect)
		}, "status 307"},
		"10 MiB": {func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, 10<<20)) //nolint:errcheck // it may be cut off
		}, "more than"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("SEKRIT")) //nolint:errcheck // the client reports it
		}, "not the expected JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			tokenEndpoint(t, s, c.answer)
			v, _ := s.verifier(t, withClient)
			_, err := v.Exchange(t.Context(), "users", accesstoken.Exchange{Resource: "https://wiki.example.com"})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "SEKRIT")
			require.NotContains(t, err.Error(), "k&y")
		})
	}
	s := newServer(t)
	forms := tokenEndpoint(t, s, reply(t, good(nil)))
	v, _ := s.verifier(t, nil)
	_, err := v.Exchange(t.Context(), "users", accesstoken.Exchange{})
	require.ErrorContains(t, err, "it needs auth.client_id")
	require.Empty(t, forms())
}

// The user at a browser is found out by the ID token of this sign-in, and by no other.
func TestBrowserLogin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer map[string]string // changes of the redirect's parameters; "": removed
		twice  string            // parameter that is sent twice
		claims map[string]any    // changes of the ID token
		forged bool
		want   string // "": alice
	}{
		"alice":                 {},
		"another state":         {answer: map[string]string{"state": "x"}, want: "the state of the request"},
		"no issuer":             {answer: map[string]string{"iss": ""}, want: "not from the issuer"},
		"another issuer":        {answer: map[string]string{"iss": "https://evil.example"}, want: "not from the issuer"},
		"a refusal":             {answer: map[string]string{"error": "access_denied"}, want: "access_denied"},
		"an outage":             {answer: map[string]string{"error": "temporarily_unavailable"}, want: `the error "temporarily_unavailable"`},
		"no code":               {answer: map[string]string{"code": ""}, want: "no code"},
		"two codes":             {twice: "code", want: "code twice"},
		"a replayed ID token":   {claims: map[string]any{"nonce": "before"}, want: "belongs to another sign-in"},
		"of another client":     {claims: map[string]any{"aud": "other"}, want: "not valid"},
		"of another issuer":     {claims: map[string]any{"iss": "https://evil.example"}, want: "not valid"},
		"an expired ID token":   {claims: map[string]any{"exp": now.Add(-time.Hour).Unix()}, want: "not valid"},
		"an ID token of no one": {claims: map[string]any{"sub": ""}, want: "no subject"},
		"a forged ID token":     {forged: true, want: "not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			k := s.newKey(t, "1")
			if c.forged {
				k.private = newPrivate(t)
			}
			var nonce string
			forms := tokenEndpoint(t, s, func(w http.ResponseWriter, r *http.Request) {
				claims := map[string]any{"iss": s.URL, "aud": "host", "sub": "alice", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "nonce": nonce}
				for name, value := range c.claims {
					claims[name] = value
				}
				token := sign(t, jose.ES256, k.private, map[jose.HeaderKey]any{"kid": "1"}, claims)
				reply(t, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": token})(w, r)
			})
			v, _ := s.verifier(t, withClient)
			login, address, err := v.BeginLogin(t.Context(), here+"/sign-in/user")
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(address, s.URL+"/authorize?"), address)
			to, err := url.Parse(address)
			require.NoError(t, err)
			query := to.Query()
			nonce = query.Get("nonce")
			require.Equal(t, "1", query.Get("tenant"))
			require.Equal(t, "S256", query.Get("code_challenge_method"))
			require.Equal(t, login.State(), query.Get("state"))
			answer := url.Values{"state": {login.State()}, "iss": {s.URL}, "code": {"c"}}
			for name, value := range c.answer {
				answer.Set(name, value)
				if value == "" {
					answer.Del(name)
				}
			}
			if c.twice != "" {
				answer.Add(c.twice, "x")
			}
			suspended, err := login.Suspend()
			require.NoError(t, err)
			elsewhere, _ := s.verifier(t, withClient)
			login, err = elsewhere.ResumeLogin(suspended) // another host of a cluster can receive the answer
			require.NoError(t, err)
			subject, err := login.Finish(t.Context(), answer)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.Equal(t, c.answer["error"] == "access_denied", errors.Is(err, accesstoken.ErrLoginRefused))
				require.Empty(t, subject)
				return
			}
			require.NoError(t, err)
			require.Equal(t, s.URL+"\nalice", subject)
			require.Equal(t, here+"/sign-in/user", forms()[0].Get("redirect_uri"))
			require.NotEmpty(t, forms()[0].Get("code_verifier"))
			u, err := v.Verify(t.Context(), k.sign(t, s.claims(nil)))
			require.NoError(t, err)
			require.Equal(t, subject, u.Subject, "the form in which calls name the user")
		})
	}
}
